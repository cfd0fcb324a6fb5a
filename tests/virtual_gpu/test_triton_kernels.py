"""Kernels of Triton are launched on nothing, and their memory is what it is on the card."""

import pytest
import torch

from peaksight.units import MIB
from peaksight.virtual_gpu.tensors.known import known_value

from .cards import peak_of, slugs

pytestmark = pytest.mark.torch

triton = pytest.importorskip("triton")
tl = pytest.importorskip("triton.language")

SIZES = [triton.Config({"BLOCK": size}) for size in (128, 256)]


@triton.jit
def double(source, target, numel, BLOCK: tl.constexpr):
    """Writes twice the source into the target."""
    offsets = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    mask = offsets < numel
    tl.store(target + offsets, 2 * tl.load(source + offsets, mask=mask), mask=mask)


tuned = triton.autotune(configs=SIZES, key=["numel"])(double)
by_rule = triton.heuristics({"BLOCK": lambda args: triton.next_power_of_2(args["numel"])})(double)


def test_a_launch(virtual_gpu):
    """Nothing is allocated, what was known of its arguments is not any more, and the kernel is named."""
    source, target = torch.ones(8, device="cuda"), torch.zeros(8, device="cuda")
    assert known_value(target) is not None

    assert 0 == peak_of(virtual_gpu, lambda: double[(1,)](source, target, 8, BLOCK=8))
    assert known_value(target) is None
    (record,) = [record for record in virtual_gpu.approximations.records() if record.slug == "triton-kernels"]
    assert "double" in record.what


def test_autotuning_takes_a_cache(virtual_gpu):
    """256 MiB the first time that sizes are seen, nothing afterwards."""
    source, target = torch.ones(8, device="cuda"), torch.zeros(8, device="cuda")

    def launch():
        tuned[lambda meta: (triton.cdiv(8, meta["BLOCK"]),)](source, target, 8)

    assert 256 * MIB == peak_of(virtual_gpu, launch)
    assert 0 == peak_of(virtual_gpu, launch)


def test_a_layer_around_a_kernel(virtual_gpu):
    """Its output and its gradients are tensors like any other."""

    class Double(torch.autograd.Function):
        @staticmethod
        def forward(ctx, source):
            target = torch.empty_like(source)
            by_rule[(1,)](source, target, source.numel())
            return target

        @staticmethod
        def backward(ctx, grad):
            return Double.forward(ctx, grad)

    source = torch.ones(1024, device="cuda", requires_grad=True)
    Double.apply(source).sum().backward()

    assert (1024,) == tuple(source.grad.shape)
    assert "triton-kernels" in slugs(virtual_gpu)
