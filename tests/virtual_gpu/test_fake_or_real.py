"""Which tensors are fake: those of the card, and parameters in the making."""

import copy
import pickle
import resource
import warnings

import pytest
import torch
import torch.nn.functional as F
from torch import nn

from peaksight.virtual_gpu.torch_private import FakeTensor

pytestmark = pytest.mark.torch


def is_fake(tensor):
    """Whether `tensor` has no data."""
    return isinstance(tensor, FakeTensor)


def test_host_tensors_are_real(virtual_gpu):
    """Outside of modules, CPU tensors have their data."""
    assert [0, 1, 2] == torch.arange(3).tolist()
    assert not any(is_fake(t) for t in (torch.empty(2), torch.zeros(1 << 17), torch.randn(2), torch.tensor([1])))
    assert 0 == virtual_gpu.ledger.allocator.allocated_bytes


@pytest.mark.parametrize(
    "make",
    [
        lambda: nn.Linear(2, 3).weight,
        lambda: nn.Embedding(4, 2).weight,
        lambda: nn.Parameter(torch.randn(3)),
        lambda: nn.Parameter(torch.zeros(3), requires_grad=False),
    ],
)
def test_parameters_are_fake(virtual_gpu, make):
    """A parameter is fake wherever it was made, on the CPU until it is moved."""
    parameter = make()

    assert is_fake(parameter)
    assert isinstance(parameter, nn.Parameter)
    assert torch.device("cpu") == parameter.device
    assert 0 == virtual_gpu.ledger.allocator.allocated_bytes


class Rope(nn.Module):
    """Needs values in its constructor."""

    def __init__(self):
        super().__init__()
        self.rates = torch.linspace(0, 1, 3).tolist()
        self.register_buffer("angles", torch.arange(4) * 0.5)
        self.weight = nn.Parameter(torch.ones(3))


def test_small_tables_of_a_module_are_real(virtual_gpu):
    """A constructor reads the values of what it computes, and its buffers keep theirs."""
    rope = Rope()

    assert [0.0, 0.5, 1.0] == rope.rates
    assert [0.0, 0.5, 1.0, 1.5] == rope.angles.tolist()
    assert [0.0, 0.5, 1.0, 1.5] == rope.cuda().angles.tolist()


def test_copies_of_small_tables_are_real(virtual_gpu):
    """`copy.deepcopy` works inside a module's `__init__`, as the metrics of torchmetrics use it."""

    class Metric(nn.Module):
        def __init__(self):
            super().__init__()
            self.counts = torch.arange(3)
            self.defaults = copy.deepcopy(self.counts)

    assert [0, 1, 2] == Metric().defaults.tolist()


def test_host_memory_of_a_large_model(virtual_gpu):
    """A matrix of 4 GiB costs no host memory, while it is made and initialised, on the CPU or on the card."""
    before = peak_of_host_bytes()
    layer = nn.Linear(1 << 15, 1 << 15, bias=False)
    nn.init.normal_(layer.weight)
    layer.cuda()

    assert 4 << 30 == virtual_gpu.ledger.allocator.allocated_bytes
    assert peak_of_host_bytes() - before < 1 << 30


class Table(nn.Module):
    """Fills its parameters before they are parameters."""

    def __init__(self, side):
        super().__init__()
        self.drawn = nn.Parameter(torch.randn(side, side))
        self.filled = nn.Parameter(nn.init.normal_(torch.empty(side, side)))
        self.blank = nn.Parameter(torch.zeros(side, side))


def test_host_memory_of_parameters_in_the_making(virtual_gpu):
    """Values drawn or filled in for three parameters of 1 GiB each in a constructor cost no host memory."""
    before = peak_of_host_bytes()
    table = Table(1 << 14).cuda()

    assert table.drawn.is_cuda
    assert 3 << 30 == virtual_gpu.ledger.allocator.allocated_bytes
    assert peak_of_host_bytes() - before < 1 << 29


def peak_of_host_bytes():
    """The most that this process ever held of the host's memory."""
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024  # kibibytes on Linux


@pytest.mark.parametrize(
    ("move", "num_bytes"),
    [
        (lambda model: model.cuda(), 4),
        (lambda model: model.to("cuda", torch.bfloat16), 2),
        (lambda model: model.half().cuda(), 2),
        (lambda model: model.to(0), 4),
        (lambda model: model.to(torch.device("cuda", 0)).double(), 8),
    ],
)
def test_tied_weights(virtual_gpu, move, num_bytes):
    """Tied weights stay one tensor and take one block when their model moves."""
    model = nn.ModuleDict({"embed": nn.Embedding(100, 64), "head": nn.Linear(64, 100, bias=False)})
    model["head"].weight = model["embed"].weight
    weight = model["embed"].weight
    move(model)

    assert weight is model["embed"].weight is model["head"].weight
    assert "cuda" == weight.device.type
    assert 100 * 64 * num_bytes == virtual_gpu.ledger.allocator.requested_bytes


def test_optimizer_keeps_its_parameters(virtual_gpu):
    """An optimizer built before the model moves steps the moved parameters."""
    model = nn.Linear(64, 64)
    optimizer = torch.optim.SGD(model.parameters())
    model.cuda()
    model(torch.ones(2, 64, device="cuda")).sum().backward()
    optimizer.step()

    assert optimizer.param_groups[0]["params"][0] is model.weight
    assert model.weight.grad.is_cuda


def test_ema_copy(virtual_gpu):
    """A deep copy of a model on the card takes the same bytes again, and keeps ties."""
    model = nn.Sequential(nn.Linear(64, 64, bias=False), nn.Linear(64, 64, bias=False)).cuda()
    model[1].weight = model[0].weight
    before = virtual_gpu.ledger.allocator.allocated_bytes
    average = copy.deepcopy(model)

    assert average[0].weight is average[1].weight
    assert average[0].weight is not model[0].weight
    assert average[0].weight.requires_grad
    assert 64 * 64 * 4 == virtual_gpu.ledger.allocator.allocated_bytes - before


def test_copies_of_parameters_have_no_gradients(virtual_gpu):
    """`Parameter.__deepcopy__` clones the parameter alone, `Tensor.__deepcopy__` its gradient, too."""
    layer, tensor = nn.Linear(64, 64, bias=False).cuda(), torch.zeros(64, 64, device="cuda", requires_grad=True)
    (layer(tensor).sum() + tensor.sum()).backward()

    assert copy.deepcopy(layer).weight.grad is None
    assert copy.deepcopy(tensor).grad.shape == (64, 64)


def test_copies_of_views(virtual_gpu):
    """A view is copied with its whole storage, beside which an empty tensor lies for a moment."""
    view = torch.zeros(64, 64, device="cuda")[1:3]
    allocator = virtual_gpu.ledger.allocator
    before = allocator.allocated_bytes
    copied = copy.deepcopy(view)

    assert (2, 64) == copied.shape
    assert 64 * 64 * 4 == allocator.allocated_bytes - before
    assert 64 * 64 * 4 + 512 == allocator.memory_stats()["allocated_bytes.all.peak"] - before


def test_averaged_model(virtual_gpu):
    """torch.optim.swa_utils keeps a second model on the card, and its counter on the host."""
    model = nn.Linear(64, 64, bias=False).cuda()
    average = torch.optim.swa_utils.AveragedModel(model)
    average.update_parameters(model)
    average.update_parameters(model)

    assert 2 == average.n_averaged.item()
    assert 2 * 64 * 64 * 4 == virtual_gpu.ledger.allocator.allocated_bytes


def test_pickle(virtual_gpu):
    """A pickled tensor comes back with its shape, dtype and device."""
    back = pickle.loads(pickle.dumps(nn.Linear(3, 2).cuda().weight))

    assert ((2, 3), torch.float32, "cuda") == (tuple(back.shape), back.dtype, back.device.type)


def test_meta_stays_meta(virtual_gpu):
    """A model built on the meta device takes memory when `to_empty` gives it some."""
    with torch.device("meta"):
        model = nn.Linear(64, 64, bias=False)

    assert model.weight.is_meta
    assert "meta" == torch.empty(3, device="meta").device.type
    assert 0 == virtual_gpu.ledger.allocator.allocated_bytes

    model.to_empty(device="cuda")

    assert model.weight.is_cuda
    assert 64 * 64 * 4 == virtual_gpu.ledger.allocator.allocated_bytes


def test_state_dict_moves_to_the_host(virtual_gpu):
    """`.cpu()` of a state dict, and loading one, leave the card as it was."""
    model = nn.Linear(64, 64).cuda()
    before = virtual_gpu.ledger.allocator.allocated_bytes
    state = {name: tensor.cpu() for name, tensor in model.state_dict().items()}
    model.load_state_dict(state)

    assert {"cpu"} == {tensor.device.type for tensor in state.values()}
    assert before == virtual_gpu.ledger.allocator.allocated_bytes


def test_model_moves_back_to_the_host(virtual_gpu):
    """`model.cpu()` frees the card and keeps the parameters fake."""
    model = nn.Linear(64, 64).cuda()
    model.cpu()

    assert is_fake(model.weight)
    assert "cpu" == model.weight.device.type
    assert 0 == virtual_gpu.ledger.allocator.allocated_bytes


def test_host_and_card_do_not_mix(virtual_gpu):
    """A model on the card refuses a batch on the host, as torch does."""
    model = nn.Linear(4, 4).cuda()

    with pytest.raises(RuntimeError):
        model(torch.ones(2, 4))


def test_training_on_the_host(virtual_gpu):
    """A model that never moves to the card trains there without taking any of it."""
    model = nn.Linear(4, 1)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    F.mse_loss(model(torch.ones(2, 4)), torch.ones(2, 1)).backward()
    optimizer.step()

    assert 0 == virtual_gpu.ledger.allocator.allocated_bytes


def test_weights_from_a_real_checkpoint(virtual_gpu):
    """Loading real tensors into fake parameters keeps them fake."""
    model = nn.Linear(3, 2)
    model.load_state_dict({"weight": torch.ones(2, 3), "bias": torch.zeros(2)})

    assert is_fake(model.weight)


def test_buffers_of_a_module_on_the_card(virtual_gpu):
    """BatchNorm's statistics move with it: weight, bias, mean and variance of 512 bytes each, and a counter."""
    layer = nn.BatchNorm1d(128).cuda()

    assert 5 * 512 == virtual_gpu.ledger.allocator.allocated_bytes
    assert 0 == layer.num_batches_tracked.item()


def test_parametrized_module(virtual_gpu):
    """torch.nn.utils.parametrizations computes the weight at each call."""
    layer = nn.utils.parametrizations.weight_norm(nn.Linear(8, 8)).cuda()
    layer(torch.ones(2, 8, device="cuda")).sum().backward()

    assert (8, 8) == tuple(layer.parametrizations.weight.original1.grad.shape)


def test_no_warnings(virtual_gpu):
    """Nothing of the virtual GPU warns a person who trains on it."""
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        model = nn.Sequential(nn.Linear(8, 8), nn.Dropout(), nn.LayerNorm(8)).cuda()
        with torch.autocast("cuda"):
            loss = model(torch.ones(2, 8, device="cuda")).sum()
        loss.backward()
        torch.optim.AdamW(model.parameters()).step()
