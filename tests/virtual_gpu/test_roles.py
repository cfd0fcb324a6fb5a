"""What a tensor is for, where that shows when it is made."""

import copy

import pytest
import torch
from torch import nn

from peaksight.records import Role
from peaksight.virtual_gpu.memory.storages import Storages

from .cards import births_on, by_role

pytestmark = pytest.mark.torch

FLOATS = 1024  # of 4 bytes


def roles_of(gpu, make):
    """The roles of the blocks that `make()` takes."""
    with births_on(gpu) as births:
        kept = make()
    assert kept is not None
    return [birth.role for birth in births]


@pytest.mark.parametrize(
    "prepare",
    [
        lambda batch: batch.float(),
        lambda batch: (batch.float() - 0.5) / 2,
        lambda batch: batch + torch.randn_like(batch),
        lambda batch: torch.cat([batch, torch.zeros(4, device="cuda")]),
        lambda batch: batch[torch.randperm(len(batch), device="cuda")],
        lambda batch: torch.cumprod(1 - torch.linspace(0, 1, 8, device="cuda"), 0),
    ],
)
def test_data_made_from_inputs(virtual_gpu, prepare):
    """What is made outside of any module from inputs or nothing is an input, also between two steps."""
    batch = torch.ones(FLOATS, dtype=torch.half).cuda()
    nn.Linear(1, 1).cuda()(torch.ones(1, 1, device="cuda"))

    assert {Role.INPUT} == set(roles_of(virtual_gpu, lambda: prepare(batch))) - {Role.WORKSPACE}


@pytest.mark.parametrize(
    "compute",
    [
        lambda batch, model: model(batch),
        lambda batch, model: model(batch).detach() + batch,
        lambda batch, model: batch * model.weight.sum(),
        lambda batch, model: batch.requires_grad_() * 2,
    ],
)
def test_activations_are_no_inputs(virtual_gpu, compute):
    """What a model, its weights or autograd has a part in is not."""
    batch, model = torch.ones(4, 4).cuda(), nn.Linear(4, 4).cuda()

    assert Role.INPUT not in roles_of(virtual_gpu, lambda: compute(batch, model))


def averages_by_deepcopy(model):
    """As `timm.utils.ModelEma` starts."""
    return copy.deepcopy(model).requires_grad_(False)


def averages_by_clone(model):
    """As a hand-written EMA starts."""
    return [parameter.detach().clone() for parameter in model.parameters()]


@torch.no_grad()
def averages_without_gradient(model):
    """The same, of parameters as they are."""
    return [parameter.clone() for parameter in model.parameters()]


@pytest.mark.parametrize("average", [averages_by_deepcopy, averages_by_clone, averages_without_gradient])
def test_averages_of_parameters(virtual_gpu, average):
    """A copy of the parameters is as large as they are, counts as such and names their modules."""
    model = nn.Sequential(nn.Linear(FLOATS, 1, bias=False), nn.Linear(FLOATS, 1, bias=False)).cuda()
    with births_on(virtual_gpu) as births:
        averages = average(model)

    assert averages
    assert 2 * 2 * FLOATS * 4 == by_role(virtual_gpu, Role.PARAMETER)
    assert ["Sequential.0", "Sequential.1"] == [birth.module for birth in births]


@pytest.mark.filterwarnings("error")
def test_averages_that_autograd_records(virtual_gpu):
    """They are no leaves any more, of whose gradient torch warns whoever asks."""
    model, average = (nn.Linear(64, 64, device="cuda") for _ in range(2))
    average.requires_grad_(False)
    optimizer = torch.optim.SGD(model.parameters(), 0.1)
    for _ in range(2):
        model(torch.randn(8, 64, device="cuda")).sum().backward()
        optimizer.step()
        for averaged, parameter in zip(average.parameters(), model.parameters(), strict=True):
            averaged.lerp_(parameter, 0.1)

    assert not average.weight.is_leaf


def test_parameters_put_aside_on_the_host(virtual_gpu):
    """They take nothing of the card, large as they may be."""
    model = nn.Linear(1 << 17, 1, bias=False).cuda()
    with births_on(virtual_gpu) as births:
        aside = [parameter.detach().cpu().clone() for parameter in model.parameters()]

    assert ["cpu"] == [tensor.device.type for tensor in aside]
    assert [] == births


def test_averages_in_single_precision(virtual_gpu):
    """An average of half-precision parameters may be wider than they are."""
    model = nn.Linear(FLOATS, 1, bias=False).half().cuda()
    average = [parameter.detach().float() for parameter in model.parameters()]

    assert [torch.float32] == [tensor.dtype for tensor in average]
    assert 2 * FLOATS + 4 * FLOATS == by_role(virtual_gpu, Role.PARAMETER)


def test_plain_tensors_that_are_trained(virtual_gpu):
    """A tensor with `requires_grad` is a parameter once an optimizer has it, with a gradient and two moments."""
    image = torch.randn(FLOATS, device="cuda", requires_grad=True)
    optimizer = torch.optim.Adam([image])
    image.square().sum().backward()
    optimizer.step()

    assert 4 * FLOATS == by_role(virtual_gpu, Role.PARAMETER)
    assert 4 * FLOATS == by_role(virtual_gpu, Role.GRADIENT)
    assert 2 * 4 * FLOATS == by_role(virtual_gpu, Role.OPTIMIZER_STATE)


def test_buffers_are_of_their_modules(virtual_gpu):
    """A part that was on the card before the whole was made is named by it; of two that share one, the first is."""
    part = nn.Sequential(nn.Linear(8, 8), nn.BatchNorm1d(8))
    for each in part:
        each.register_buffer("mask", torch.ones(FLOATS, device="cuda"))
    part[1].mask = part[0].mask
    with births_on(virtual_gpu) as births:
        part.cuda()
    early = {birth.module for birth in births if birth.role is Role.BUFFER}
    nn.Sequential(part, nn.Linear(8, 8)).cuda()
    modules = sorted(
        (birth.module, birth.requested_bytes) for birth in virtual_gpu.ledger.births if birth.role is Role.BUFFER
    )

    assert early == {"Sequential.1"}
    assert modules == [("Sequential.0.0", 4 * FLOATS)] + [("Sequential.0.1", size) for size in (8, 32, 32)]


def test_pieces_are_marked_by_themselves(virtual_gpu, monkeypatch):
    """Adapters move every piece that they put into a model: the whole of it is not walked again at each."""
    marked = []
    mark = Storages.mark
    monkeypatch.setattr(Storages, "mark", lambda self, *args, **kwargs: (marked.append(1), mark(self, *args, **kwargs)))
    model = nn.Sequential(*(nn.Linear(4, 4) for _ in range(50))).cuda()
    marked.clear()

    for name in map(str, range(50)):
        model.set_submodule(name, nn.Sequential(model.get_submodule(name), nn.BatchNorm1d(4)).cuda())
    model(torch.ones(2, 4, device="cuda")).sum().backward()

    assert len(marked) < 50 * 60
    parameters, buffers = list(model.parameters()), list(model.buffers())
    assert by_role(virtual_gpu, Role.PARAMETER) == sum(each.nbytes for each in parameters)
    assert by_role(virtual_gpu, Role.GRADIENT) == sum(each.nbytes for each in parameters)
    assert by_role(virtual_gpu, Role.BUFFER) == sum(each.nbytes for each in buffers)
