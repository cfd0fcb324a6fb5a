"""DistributedDataParallel on the virtual GPU: what is there beside parameters, gradients and activations, and when."""

import pytest
import torch
import torch.distributed as dist
from torch import nn
from torch.distributed.algorithms.ddp_comm_hooks import default_hooks, powerSGD_hook
from torch.nn.parallel import DistributedDataParallel

from peaksight.records import Role
from peaksight.units import MIB

from .cards import births_on, by_role, requested, slugs

pytestmark = pytest.mark.torch

WIDTH = 1024  # weights of 4 MiB
LAUNCHED = {"RANK": "1", "LOCAL_RANK": "1", "WORLD_SIZE": "2", "MASTER_ADDR": "127.0.0.1", "MASTER_PORT": "29500"}


@pytest.fixture
def rank(monkeypatch, virtual_gpu):
    """The card of one of two ranks."""
    for name, value in LAUNCHED.items():
        monkeypatch.setenv(name, "0" if name == "LOCAL_RANK" else value)
    dist.init_process_group("nccl")
    return virtual_gpu


class Net(nn.Module):
    """Layers, and one that is spare."""

    def __init__(self, num_layers, spare=False):
        super().__init__()
        self.layers = nn.ModuleList(nn.Linear(WIDTH, WIDTH, bias=False) for _ in range(num_layers + spare))
        self.used = num_layers

    def forward(self, x):
        for layer in self.layers[: self.used]:
            x = torch.relu(layer(x))
        return x.sum()


def wrapped(num_layers=3, spare=False, **options):
    return DistributedDataParallel(Net(num_layers, spare).cuda(), device_ids=[0], **options)


def train(model, num_steps, set_to_none=True):
    """After each step's backward pass, the step."""
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    for _ in range(num_steps):
        model(torch.randn(8, WIDTH, device="cuda")).backward()
        yield
        optimizer.step()
        optimizer.zero_grad(set_to_none=set_to_none)


def buckets_of(card):
    """In MiB, those that are alive."""
    births = card.ledger.births
    sizes = [b.requested_bytes / MIB for b in births if b.role is Role.COMMUNICATION and b.died is None]
    return [size for size in sizes if size >= 1]


@pytest.mark.parametrize("as_view", [False, True], ids=["copied", "view"])
def test_buckets_are_beside_gradients_or_in_their_place(as_view, rank):
    """As large as all parameters, from the start and anew in the second step."""
    model = wrapped(gradient_as_bucket_view=as_view)

    assert buckets_of(rank) == [12]
    for step, _ in enumerate(train(model, 3)):
        assert buckets_of(rank) == ([12] if step == 0 else [4, 8])
        assert by_role(rank, Role.GRADIENT) == (0 if as_view else 12 * MIB)
    late = [birth.requested_bytes for birth in rank.ledger.births if birth.late_free and birth.died is not None]
    assert late == [12 * MIB]
    assert slugs(rank).count("bucket-release") == 1


@pytest.mark.parametrize(
    ("options", "first", "rebuilt"),
    [
        ({}, [32], [4, 28]),
        ({"bucket_cap_mb": 8}, [32], [8, 8, 8, 8]),
        ({"bucket_cap_mb": 1}, [32], [4] * 8),
        ({"static_graph": True}, [32], [4, 28]),
        ({"find_unused_parameters": True}, [4, 28], [4, 28]),
    ],
    ids=["default", "cap", "small-cap", "static", "unused"],
)
def test_buckets_are_filled_up_to_their_cap(options, first, rebuilt, rank):
    """1 MiB for the first unless a cap is given, then 25 MiB; before the order is known, mostly one for everything."""
    model = wrapped(8, **options)

    assert sorted(buckets_of(rank)) == first
    for _ in train(model, 3):
        pass
    assert sorted(buckets_of(rank)) == rebuilt


def test_parameters_that_are_not_used(rank):
    """They have a place in a bucket, and a flag for each parameter says who was used; without it torch complains."""
    for _ in train(wrapped(2, spare=True, find_unused_parameters=True), 2):
        assert by_role(rank, Role.GRADIENT) == 8 * MIB
        assert sum(buckets_of(rank)) == 12

    with pytest.raises(RuntimeError, match="Expected to have finished reduction"):
        for _ in train(wrapped(2, spare=True), 2):
            pass


@pytest.mark.parametrize("as_view", [False, True], ids=["copied", "view"])
def test_gradients_that_are_accumulated_are_reduced_once(as_view, rank):
    """Under `no_sync` the buckets stay as they are, and views are made by the pass that synchronises."""
    model = wrapped(gradient_as_bucket_view=as_view)
    with model.no_sync():
        model(torch.randn(8, WIDTH, device="cuda")).backward()

        assert by_role(rank, Role.GRADIENT) == 12 * MIB
        assert "bucket-release" not in slugs(rank)
    model(torch.randn(8, WIDTH, device="cuda")).backward()

    assert by_role(rank, Role.GRADIENT) == (0 if as_view else 12 * MIB)
    assert buckets_of(rank) == [12]


def test_gradients_that_are_zeroed_stay_views(rank):
    """In the new buckets as in the first."""
    model = wrapped(gradient_as_bucket_view=True)
    for _ in train(model, 3, set_to_none=False):
        assert by_role(rank, Role.GRADIENT) == 0
    assert model.module.layers[0].weight.grad.untyped_storage().nbytes() == 8 * MIB


@pytest.mark.parametrize("hook", [default_hooks.fp16_compress_hook, default_hooks.bf16_compress_hook])
def test_a_hook_that_compresses(hook, rank):
    """Half of each bucket, which NCCL keeps to the end of the step."""
    model = wrapped()
    model.register_comm_hook(None, hook)
    for step, _ in enumerate(train(model, 3)):
        casts = [b for b in rank.ledger.births if b.tensor.startswith(("float16", "bfloat16")) and b.died is None]

        assert requested(casts) == ([6 * MIB] if step == 0 else [2 * MIB, 4 * MIB])
        assert {Role.COMMUNICATION} == {birth.role for birth in casts}


def test_power_sgd(rank):
    """From the step in which it starts an error for each gradient, and workspaces of cuBLAS for each callback."""
    model = wrapped()
    state = powerSGD_hook.PowerSGDState(None, matrix_approximation_rank=4, start_powerSGD_iter=2)
    model.register_comm_hook(state, powerSGD_hook.powerSGD_hook)
    workspaces = []
    for _ in train(model, 4):
        workspaces.append(by_role(rank, Role.WORKSPACE))

    assert sum(error.nbytes for error in state.error_dict.values()) == 12 * MIB
    assert 24 * MIB <= by_role(rank, Role.COMMUNICATION) < 26 * MIB
    assert workspaces[0] == workspaces[1] < workspaces[2] < workspaces[3]


def test_buffers_are_sent_before_each_forward(rank):
    """In one flat tensor, which is gone afterwards."""
    model = nn.Sequential(nn.Linear(WIDTH, WIDTH), nn.BatchNorm1d(WIDTH)).cuda()
    parallel = DistributedDataParallel(model, device_ids=[0])
    with births_on(rank) as births:
        parallel(torch.randn(8, WIDTH, device="cuda"))
    flat = [birth for birth in births if birth.role is Role.COMMUNICATION]

    assert (2 * WIDTH * 4) in requested(flat)
    assert all(birth.died is not None for birth in flat)


@pytest.mark.parametrize("layout", [torch.contiguous_format, torch.channels_last], ids=["contiguous", "channels-last"])
def test_batch_norm_over_all_ranks(layout, rank):
    """Gathers statistics; results and what is saved are as of one rank."""
    model = nn.Sequential(nn.Conv2d(3, 64, 3), nn.BatchNorm2d(64), nn.ReLU())
    model = nn.SyncBatchNorm.convert_sync_batchnorm(model).cuda().to(memory_format=layout)
    images = torch.randn(4, 3, 34, 34, device="cuda").to(memory_format=layout)
    parallel = DistributedDataParallel(model, device_ids=[0])
    with births_on(rank) as births:
        parallel(images).sum().backward()
    normalised = [birth for birth in births if birth.op == "aten::batch_norm_elemt"]

    assert requested(normalised) == [4 * 64 * 32 * 32 * 4]
    assert model[1].weight.grad.shape == (64,)
    assert "unknown-operator" not in slugs(rank)


def test_inputs_that_are_uneven(rank):
    """`join` lets a rank that ends early take part until the last has ended."""
    model = wrapped()
    with model.join():
        for _ in train(model, 2):
            pass

    assert by_role(rank, Role.GRADIENT) == 0
    assert [call.kind for call in rank.collectives.facts].count("join") == 1


def test_a_run_that_is_stopped_in_a_join(rank):
    """It is not at its end."""
    with pytest.raises(KeyError), wrapped().join():
        raise KeyError

    assert "join" not in [call.kind for call in rank.collectives.facts]


def test_objects_of_another_rank(rank):
    """Stay what this rank has; its own it sends."""
    settings, sent, own = [{"rank": 1}], [None], [None]
    dist.broadcast_object_list(settings, src=0)
    dist.broadcast_object_list(settings, 1)
    dist.scatter_object_list(sent, None, src=0)
    dist.scatter_object_list(own, ["a", "b"], src=1)

    assert (settings, sent, own) == ([{"rank": 1}], [None], ["b"])
