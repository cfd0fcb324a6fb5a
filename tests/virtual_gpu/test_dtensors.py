"""Operators on DTensors, as of tensor parallelism: the card runs the kernels that it runs on their parts."""

import pytest
import torch
import torch.distributed as dist
import torch.nn.functional as F
from torch.distributed.device_mesh import init_device_mesh
from torch.distributed.tensor import DTensor, Replicate, Shard

from peaksight.virtual_gpu.ranks.world import World

from .cards import births_on, h100, requested

pytestmark = pytest.mark.torch

SIZE, WIDTH = 4, 512


@pytest.fixture(scope="module")
def mesh_and_ledger():
    """Of the first rank."""
    with h100(num_gpus=SIZE, world=World(0, SIZE, SIZE)) as gpu:
        dist.init_process_group("nccl", init_method="tcp://localhost:99", rank=0, world_size=SIZE)
        yield init_device_mesh("cuda", (SIZE,)), gpu.ledger


def attend(x, weight):
    heads = x.unflatten(-1, (8, 64)).transpose(1, 2).bfloat16()
    return F.scaled_dot_product_attention(heads, heads, heads, is_causal=True)


def project(x, weight):
    with torch.autocast("cuda", torch.bfloat16):
        return F.linear(x, weight)


@pytest.mark.parametrize(
    ("op", "kept"),
    [
        (lambda x, weight: F.rms_norm(x, (WIDTH,), weight[0]), [2 * 64 * WIDTH * 4, 2 * 64 * 4]),
        (lambda x, weight: F.dropout(x, 0.1), [2 * 64 * WIDTH, 2 * 64 * WIDTH * 4]),
        (lambda x, weight: F.layer_norm(x, (WIDTH,), weight[0]), None),
        (lambda x, weight: F.silu(x), None),
        (lambda x, weight: F.softmax(x, -1), None),
        (attend, None),
        (project, [2 * 64 * WIDTH * 2, 64 * WIDTH * 2, 2 * 64 * 64 * 2]),
    ],
    ids=["rms_norm", "dropout", "layer_norm", "silu", "softmax", "attention", "autocast"],
)
def test_a_dtensor_takes_what_its_part_takes(op, kept, mesh_and_ledger):
    """Of the same kernels: fused norms, a mask of booleans, flash attention, weights that autocast casts."""
    mesh, ledger = mesh_and_ledger
    x = torch.randn(2, 64, WIDTH, device="cuda", requires_grad=True)
    weight = torch.randn(64, WIDTH, device="cuda", requires_grad=True)
    op(x, weight)  # with the workspace of cuBLAS
    with births_on(ledger) as of_part:
        plain = op(x, weight)
    sharded = DTensor.from_local(x, mesh, [Shard(0)], run_check=False)
    copied = DTensor.from_local(weight, mesh, [Replicate()], run_check=False)
    with births_on(ledger) as of_dtensor:
        result = op(sharded, copied)
    result.sum().backward()

    assert (result.to_local().shape, result.dtype) == (plain.shape, plain.dtype)
    assert requested(of_dtensor) == requested(of_part)
    assert x.grad.shape == x.shape
    if kept is not None:
        assert sorted(requested(of_part)) == sorted(kept)


def test_meta_tensors_stay_as_they_are(mesh_and_ledger):
    """They are on no card; and tensors on the CPU are not cast for the card."""
    x = torch.randn(2, WIDTH, device="meta", requires_grad=True)
    F.rms_norm(F.dropout(x, 0.1), (WIDTH,)).sum().backward()
    with torch.autocast("cuda", torch.bfloat16):
        on_host = torch.ones(2, 2) @ torch.ones(2, 2)
        loss = F.binary_cross_entropy(torch.full((2,), 0.5), torch.ones(2))

    assert x.grad.device.type == "meta"
    assert (on_host.dtype, loss.dtype) == (torch.float32, torch.float32)
