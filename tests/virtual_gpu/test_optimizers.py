"""Optimizers: the card's foreach defaults, their state, and the temporaries of a step."""

import warnings

import pytest
import torch
from torch import nn

from peaksight.records import Phase, Role
from peaksight.units import MIB

from .cards import RELEASE, births_on, by_role, card_with, peak_of, requested

pytestmark = pytest.mark.torch

# Two matrices of 64 x 64 floats: 16,384 bytes each, a multiple of the block size.
MATRIX = 64 * 64 * 4
MODEL = 2 * MATRIX


def model_with_gradients():
    """Two layers without bias on the card, after one backward pass."""
    model = nn.Sequential(nn.Linear(64, 64, bias=False), nn.Linear(64, 64, bias=False)).cuda()
    model(torch.ones(2, 64, device="cuda")).sum().backward()
    return model


def second_step_peak(gpu, make_optimizer):
    """What a step takes at its highest once the optimizer has its state, and the optimizer."""
    model = model_with_gradients()
    optimizer = make_optimizer(model.parameters())
    optimizer.step()
    return peak_of(gpu, optimizer.step), optimizer


@pytest.mark.parametrize(
    ("make_optimizer", "temporaries"),
    [
        (lambda p: torch.optim.AdamW(p), MODEL),
        (lambda p: torch.optim.AdamW(p, foreach=True), MODEL),
        (lambda p: torch.optim.AdamW(p, amsgrad=True), MODEL),
        (lambda p: torch.optim.Adam(p), MODEL),
        (lambda p: torch.optim.Adam(p, weight_decay=0.1), MODEL),
        (lambda p: torch.optim.AdamW(p, foreach=False), 3 * MATRIX),
        (lambda p: torch.optim.AdamW(p, fused=True), 0),
        (lambda p: torch.optim.SGD(p), 0),
        (lambda p: torch.optim.SGD(p, momentum=0.9), 0),
        (lambda p: torch.optim.SGD(p, weight_decay=0.1), MODEL),
        (lambda p: torch.optim.SGD(p, fused=True), 0),
        (lambda p: torch.optim.SGD(p, momentum=0.9, fused=True), 0),
        pytest.param(
            lambda p: torch.optim.Adagrad(p, fused=True), 0, marks=pytest.mark.skipif(RELEASE < (2, 13), reason="new")
        ),
        (lambda p: torch.optim.RMSprop(p), MODEL),
        (lambda p: torch.optim.Adagrad(p), 2 * MODEL),
        (lambda p: torch.optim.Adadelta(p), 2 * MODEL),
        (lambda p: torch.optim.Adamax(p), MODEL),
    ],
)
def test_temporaries(virtual_gpu, make_optimizer, temporaries):
    """What a step takes beyond the state: foreach kernels make lists as large as the model.

    AdamW: the square roots of the second moments; the decayed gradients of Adam are dropped before. Adagrad and
    Adadelta: numerator and denominator. A loop over parameters still holds the denominator of the one before while
    it makes a root and a quotient; a fused kernel takes nothing.
    """
    peak, _ = second_step_peak(virtual_gpu, make_optimizer)

    assert temporaries == peak


@pytest.mark.parametrize(
    ("make_optimizer", "state"),
    [
        (lambda p: torch.optim.AdamW(p), 2 * MODEL),
        (lambda p: torch.optim.AdamW(p, amsgrad=True), 3 * MODEL),
        (lambda p: torch.optim.AdamW(p, fused=True), 2 * MODEL + 2 * 4),
        (lambda p: torch.optim.AdamW(p, capturable=True), 2 * MODEL + 2 * 4),
        (lambda p: torch.optim.SGD(p), 0),
        (lambda p: torch.optim.SGD(p, momentum=0.9), MODEL),
        (lambda p: torch.optim.RMSprop(p, momentum=0.9, centered=True), 3 * MODEL),
        (lambda p: torch.optim.Adagrad(p), MODEL),
        (lambda p: torch.optim.RAdam(p), 2 * MODEL),
        (lambda p: torch.optim.NAdam(p), 2 * MODEL),
        (lambda p: torch.optim.Adafactor(p), 2 * 2 * 64 * 4),
    ],
)
def test_state(virtual_gpu, make_optimizer, state):
    """State is as large as its rule says, appears at the first step, and has its role.

    The steps of fused and capturable optimizers are on the card, 4 bytes for each parameter; Adafactor keeps a row
    and a column for each matrix.
    """
    _, optimizer = second_step_peak(virtual_gpu, make_optimizer)

    assert state == by_role(virtual_gpu, Role.OPTIMIZER_STATE)
    assert optimizer.param_groups


def test_state_is_made_in_the_step(virtual_gpu):
    """The state of AdamW belongs to the optimizer's phase of step 1 and to the module of its parameter."""
    torch.optim.AdamW(model_with_gradients().parameters()).step()
    state = [birth for birth in virtual_gpu.ledger.births if birth.role is Role.OPTIMIZER_STATE]

    assert [MATRIX] * 4 == requested(state)
    assert {(1, Phase.OPTIMIZER)} == {(birth.step, birth.phase) for birth in state}
    assert ["Sequential.0"] * 2 + ["Sequential.1"] * 2 == [birth.module for birth in state]


def test_state_of_a_step_that_fails():
    """Adam has both its moments when the first temporary of its step finds no room: they are its state already."""
    with card_with((96 + 72) * MIB) as gpu:  # 96 of which are CUDA's own
        model = nn.Linear(2048, 2048, bias=False, device="cuda")  # 16 MiB
        model.weight.grad = torch.zeros_like(model.weight)
        with pytest.raises(torch.OutOfMemoryError):
            torch.optim.Adam(model.parameters(), foreach=True).step()

        assert [16 * MIB] * 2 == [
            birth.requested_bytes for birth in gpu.ledger.births if birth.role is Role.OPTIMIZER_STATE
        ]


def test_adagrad_state_is_made_before_the_step(virtual_gpu):
    """Adagrad fills its sums in the constructor; they are optimizer state all the same."""
    torch.optim.Adagrad(model_with_gradients().parameters()).step()
    state = [birth for birth in virtual_gpu.ledger.births if birth.role is Role.OPTIMIZER_STATE]

    assert [MATRIX] * 2 == requested(state)


def test_master_weights_in_half(virtual_gpu):
    """State has the dtype of its parameter: two moments of two bytes an element."""
    model = nn.Linear(64, 64, bias=False).to("cuda", torch.bfloat16)
    model(torch.ones(2, 64, device="cuda", dtype=torch.bfloat16)).sum().backward()
    optimizer = torch.optim.AdamW(model.parameters())
    optimizer.step()

    assert 2 * MATRIX // 2 == by_role(virtual_gpu, Role.OPTIMIZER_STATE)


@pytest.mark.parametrize(("set_to_none", "gradients"), [(True, 0), (False, MODEL)])
def test_zero_grad(virtual_gpu, set_to_none, gradients):
    """`zero_grad` frees gradients, or keeps them."""
    model = model_with_gradients()
    torch.optim.SGD(model.parameters()).zero_grad(set_to_none=set_to_none)

    assert gradients == by_role(virtual_gpu, Role.GRADIENT)


def test_frozen_parameters_have_no_state(virtual_gpu):
    """A frozen layer has neither gradient nor state."""
    model = nn.Sequential(nn.Linear(64, 64, bias=False).requires_grad_(False), nn.Linear(64, 64, bias=False)).cuda()
    model(torch.ones(2, 64, device="cuda")).sum().backward()
    optimizer = torch.optim.AdamW(model.parameters())
    optimizer.step()

    assert MATRIX == by_role(virtual_gpu, Role.GRADIENT)
    assert 2 * MATRIX == by_role(virtual_gpu, Role.OPTIMIZER_STATE)


def test_clip_grad_norm(virtual_gpu):
    """Clipping takes scalars: a norm for each gradient, their stack, the total, and the coefficient twice."""
    model = model_with_gradients()
    with births_on(virtual_gpu) as births:
        norm = nn.utils.clip_grad_norm_(model.parameters(), 1.0)

    assert () == tuple(norm.shape)
    assert all(birth.requested_bytes <= 8 for birth in births)
    assert MODEL == by_role(virtual_gpu, Role.GRADIENT)


def test_clip_grad_value(virtual_gpu):
    """Clipping by value is in place."""
    model = model_with_gradients()

    assert 0 == peak_of(virtual_gpu, lambda: nn.utils.clip_grad_value_(model.parameters(), 1.0))


@pytest.mark.parametrize(
    "make_scheduler",
    [
        lambda o: torch.optim.lr_scheduler.OneCycleLR(o, 0.1, total_steps=10, cycle_momentum=False),
        lambda o: torch.optim.lr_scheduler.CosineAnnealingLR(o, T_max=10),
        lambda o: torch.optim.lr_scheduler.LambdaLR(o, lambda step: 1 / (step + 1)),
        lambda o: torch.optim.lr_scheduler.SequentialLR(
            o,
            [torch.optim.lr_scheduler.LinearLR(o), torch.optim.lr_scheduler.CosineAnnealingLR(o, T_max=5)],
            milestones=[1],
        ),
    ],
)
def test_schedulers(virtual_gpu, make_scheduler):
    """Schedulers count the steps and take no memory."""
    model = model_with_gradients()
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    scheduler = make_scheduler(optimizer)
    before = torch.cuda.memory_allocated()
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", "The epoch parameter")  # SequentialLR's own
        for _ in range(2):
            optimizer.step()
            scheduler.step()

    assert before == torch.cuda.memory_allocated()
    assert isinstance(scheduler.get_last_lr()[0], float)


def test_plateau_scheduler(virtual_gpu):
    """A scheduler that reads the loss gets a stand-in."""
    model = model_with_gradients()
    scheduler = torch.optim.lr_scheduler.ReduceLROnPlateau(torch.optim.SGD(model.parameters(), lr=0.1))
    scheduler.step(model(torch.ones(2, 64, device="cuda")).sum().detach())

    assert [0.1] == scheduler.get_last_lr()


@pytest.mark.parametrize("as_keyword", [False, True])
def test_closure(virtual_gpu, as_keyword):
    """LBFGS evaluates its closure inside the step; so does every optimizer that Lightning steps."""
    model = model_with_gradients()
    optimizer = torch.optim.LBFGS(model.parameters(), max_iter=2)

    def closure():
        optimizer.zero_grad()
        loss = model(torch.ones(2, 64, device="cuda")).sum()
        phases.append(virtual_gpu.loop.phase)
        loss.register_hook(lambda grad: phases.append(virtual_gpu.loop.phase))
        loss.backward()
        return loss

    phases = []
    optimizer.step(**{"closure": closure}) if as_keyword else optimizer.step(closure)

    assert 2 == virtual_gpu.loop.step
    assert {Phase.FORWARD, Phase.BACKWARD} == set(phases)


def test_lbfgs_fills_its_history(virtual_gpu):
    """Pairs of model-sized directions, which stay: a loss that stood still would end its iterations at the first."""
    model = model_with_gradients()
    optimizer = torch.optim.LBFGS(model.parameters(), max_iter=4, history_size=6)

    def closure():
        loss = model(torch.ones(2, 64, device="cuda")).sum()
        loss.backward()
        return loss

    kept = []

    for _ in range(3):
        optimizer.step(closure)
        kept.append(len(optimizer.state[model[0].weight]["old_dirs"]))

    assert kept == [3, 6, 6]


def test_state_dict(virtual_gpu):
    """A state dict loads into a new optimizer, and takes its bytes again until the old one is gone."""
    model = model_with_gradients()
    optimizer = torch.optim.AdamW(model.parameters())
    optimizer.step()
    fresh = torch.optim.AdamW(model.parameters())
    fresh.load_state_dict(optimizer.state_dict())
    fresh.step()

    assert fresh.state[model[0].weight]["exp_avg"].is_cuda


@pytest.mark.parametrize(("is_scaled", "momentum"), [(True, 0.9), (True, 0.0), (False, 0.9)])
def test_a_scaler_may_skip_the_steps_that_make_a_state(virtual_gpu, is_scaled, momentum):
    """Only where there is a state, and a scaler that is enabled; memory can only be less."""
    model = nn.Linear(64, 64).cuda()
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1, momentum=momentum)
    scaler = torch.amp.GradScaler("cuda", enabled=is_scaled)
    for _ in range(2):
        scaler.scale(model(torch.empty(8, 64, device="cuda")).sum()).backward()
        scaler.step(optimizer)
        scaler.update()
    said = [each for each in virtual_gpu.approximations.records() if each.slug == "skipped-steps"]

    assert [each.at_most_bytes for each in said] == ([0] if is_scaled and momentum else [])
