"""Steps, phases and modules, and when the run stops."""

import pytest
import torch
from torch import nn

from peaksight.errors import StopSimulation
from peaksight.records import Phase, Role
from peaksight.units import MIB
from peaksight.virtual_gpu.training.stopping import MAX_RETRYING, MAX_STEPS, MAX_TRIALS, StepEnd, StopRule

from .cards import births_on, card_with, h100

pytestmark = pytest.mark.torch


def batch(rows=2):
    """Rows of 64 numbers on the card."""
    return torch.randn(rows, 64, device="cuda")


def train(model, optimizer, steps=100, grow=0):
    """A loop that would go on for `steps` steps; returns how many it began."""
    for step in range(steps):
        model(batch(2 + grow * step)).sum().backward()
        optimizer.step()
        optimizer.zero_grad()
    return steps


def test_phases(virtual_gpu):
    """Each block belongs to the phase that took it."""
    model = nn.Linear(64, 64).cuda()
    optimizer = torch.optim.AdamW(model.parameters())
    data = batch()
    out = model(data)
    out.sum().backward()
    optimizer.step()
    with torch.no_grad():
        model.eval()(data)
    phases = {birth.op: birth.phase for birth in virtual_gpu.ledger.births if birth.role is not Role.WORKSPACE}

    assert Phase.INIT is phases["aten::randn"]
    assert Phase.BACKWARD is phases["aten::mm"]
    assert Phase.OPTIMIZER is phases["aten::_foreach_sqrt"]
    assert Phase.EVALUATION is phases["aten::addmm"]


@pytest.mark.parametrize(
    ("frozen", "from_trained", "phase"),
    [(True, True, Phase.FORWARD), (True, False, Phase.EVALUATION), (False, True, Phase.EVALUATION)],
)
def test_training_goes_through_a_frozen_model_in_eval(virtual_gpu, frozen, from_trained, phase):
    """GIVEN its input needs a gradient, THEN its forward is the training's; near misses: none does, it could train."""
    model = nn.Linear(64, 64).cuda().eval().requires_grad_(not frozen)
    data = batch().requires_grad_(from_trained)
    with births_on(virtual_gpu) as births:
        model(data).exp()

    assert [birth.phase for birth in births if birth.op == "aten::addmm"] == [phase]


def test_modules(virtual_gpu):
    """A block belongs to the innermost module, named from the root that was called."""

    class Net(nn.Module):
        def __init__(self):
            super().__init__()
            self.layers = nn.ModuleList([nn.Linear(64, 64), nn.Linear(64, 64)])

        def forward(self, value):
            for layer in self.layers:
                value = layer(value)
            return value.exp()

    net = Net().cuda()
    data = batch()
    with births_on(virtual_gpu) as births:
        net(data)

    assert ["Net.layers.0", "Net.layers.1", "Net"] == [b.module for b in births if b.role is not Role.WORKSPACE]


def test_source_lines(virtual_gpu):
    """A block carries the person's line and the library's."""
    layer = nn.Linear(64, 64).cuda()
    layer(batch())
    (birth,) = [birth for birth in virtual_gpu.ledger.births if birth.op == "aten::addmm"]

    assert "test_training_loop.py:" in birth.lines.source
    assert birth.lines.library.startswith("torch/nn/modules/linear.py:")


@pytest.mark.parametrize("is_recorded", [True, False])
def test_workspaces_have_the_line_of_their_operator(is_recorded):
    """What a kernel takes beside its result was asked for by the caller of the operator, and by nothing of ours."""
    with h100() as gpu:
        linear = nn.Linear(4, 4, device="cuda")
        batch = torch.ones(2, 4, device="cuda")
        with births_on(gpu) as births, torch.set_grad_enabled(is_recorded):
            linear(batch).sort()

    assert Role.WORKSPACE in {birth.role for birth in births}
    assert {birth.lines.library.rpartition(":")[0] for birth in births} == {"", "torch/nn/modules/linear.py"}


def test_steady_stop():
    """Two steps that peak alike end the run, after three at least: the first has no optimizer state yet."""
    with h100(max_steps=None) as gpu:
        model = nn.Linear(64, 64).cuda()
        with pytest.raises(StopSimulation) as stop:
            train(model, torch.optim.AdamW(model.parameters()))

    assert "steady" == stop.value.reason
    assert 3 == len(gpu.ledger.steps)
    assert [1, 2, 3] == [step.step for step in gpu.ledger.steps]


def test_growing_steps_go_on():
    """Steps that grow by more than a MiB are followed for longer, twenty at most."""
    with h100(max_steps=None) as gpu:
        model = nn.Linear(64, 64).cuda()
        with pytest.raises(StopSimulation) as stop:
            train(model, torch.optim.SGD(model.parameters()), grow=16384)

    assert "unsteady" == stop.value.reason
    assert 20 == len(gpu.ledger.steps)


def keep_a_batch_each(steps):
    """Train for `steps` steps, each of which leaves its batch behind."""
    model, kept = nn.Linear(64, 64).cuda(), []
    optimizer = torch.optim.SGD(model.parameters())
    for _ in range(steps):
        kept.append(batch(64))
        model(kept[-1]).sum().backward()
        optimizer.step()
        optimizer.zero_grad()


def test_what_steps_leave_behind_is_told():
    """GIVEN each step keeps 16 KiB, far less than what counts as steady, THEN six are seen and the growth is noted."""
    with h100(max_steps=None) as gpu, pytest.raises(StopSimulation) as stop:
        keep_a_batch_each(100)
    (note,) = (note for note in gpu.approximations.records() if note.slug == "growth")

    assert "unsteady" == stop.value.reason
    assert 6 == len(gpu.ledger.steps)
    assert "16.00 KiB" in note.what


def test_a_batch_that_is_fetched_ahead_is_no_growth():
    """It is there at the end of the step after that which made it, and then it is another."""
    with h100(max_steps=None) as gpu, pytest.raises(StopSimulation) as stop:
        model = nn.Linear(64, 64).cuda()
        optimizer = torch.optim.SGD(model.parameters())
        following = batch(64)
        for _ in range(100):
            current, following = following, batch(64)
            model(current).sum().backward()
            optimizer.step()
            optimizer.zero_grad()

    assert "steady" == stop.value.reason
    assert 5 == len(gpu.ledger.steps)


def test_a_script_that_ends_while_it_grows_is_seen_whole():
    """Nothing is unknown then."""
    with h100(max_steps=None) as gpu:
        keep_a_batch_each(5)

    assert 5 == len(gpu.ledger.steps)
    assert not [note for note in gpu.approximations.records() if note.slug == "growth"]


def test_a_number_kept_in_each_step_is_no_growth():
    """Nor is what one step leaves for all that follow; one that leaves nothing, among others, changes nothing."""
    assert stops([99 * MIB] * 9, left=[0, 4 * MIB, *[512] * 7]) == (3, "steady")
    assert stops([8 * MIB] * 9, left=[0, 4 * MIB, MIB, 0, 0, 0]) == (5, "steady")
    assert stops([8 * MIB] * 9, left=[0, 0, MIB, 0, MIB, MIB]) == (6, "unsteady")
    assert stops([8 * MIB] * 9, left=[0, *[MIB] * 8]) == (6, "unsteady")


def test_steps_that_give_the_cache_back_are_alike_in_the_same_layout():
    """Each may leave less room for the next: the fourth step of a transformer failed that had done three."""
    assert stops([8 * MIB] * 12, layouts=[None, 1, 2, 3, 3]) == (5, "steady")
    assert stops([8 * MIB] * 12, layouts=[None, 1, None, None]) == (4, "steady")
    assert stops([8 * MIB] * 30, layouts=range(30)) == (MAX_RETRYING, "steady")
    assert stops([8 * MIB] * 30, layouts=[None, *range(29)]) == (MAX_RETRYING + 1, "steady")


def stops(peaks, may_be_trial=False, left=(), layouts=()):
    """After how many of `peaks` the run stops, and why; `left` is what the step before each left behind."""
    rule = StopRule(None)
    left = [*left, *[0] * (len(peaks) - len(left))]
    layouts = [*layouts, *[None] * (len(peaks) - len(layouts))]
    reasons = [
        rule.reason_to_stop(StepEnd(peak, rest, layout), may_be_trial=may_be_trial)
        for peak, rest, layout in zip(peaks, left, layouts, strict=True)
    ]
    count = next((i for i, reason in enumerate(reasons, start=1) if reason), None)
    return count, count and reasons[count - 1]


def test_steps_of_a_possible_search_go_on_for_longer():
    """It may try each size for some steps; ten that peak alike are more than a search takes."""
    doubling = [size * MIB for size in (1, 2, 4, 8, 16) for _ in range(3)]

    assert stops(doubling) == (3, "steady")
    assert stops(doubling, may_be_trial=True) == (None, None)
    assert stops([MIB] * 20, may_be_trial=True) == (10, "steady")
    assert stops([step * 2 * MIB for step in range(1000)], may_be_trial=True) == (MAX_TRIALS, "unsteady")


def test_the_training_after_a_search_is_followed_from_its_start():
    """Steps that peak as the last trials did are its own."""
    rule = StopRule(None)
    for peak in range(MAX_STEPS):
        assert rule.reason_to_stop(StepEnd(2 * peak * MIB), may_be_trial=True) is None
    reasons = [rule.reason_to_stop(StepEnd(2 * MAX_STEPS * MIB), may_be_trial=False) for _ in range(3)]

    assert reasons == [None, None, "steady"]


@pytest.mark.parametrize("max_steps", [1, 2, 5])
def test_max_steps(max_steps):
    """As many steps as asked for."""
    with h100(max_steps=max_steps) as gpu:
        model = nn.Linear(64, 64).cuda()
        with pytest.raises(StopSimulation) as stop:
            train(model, torch.optim.SGD(model.parameters()))

    assert "steps" == stop.value.reason
    assert max_steps == len(gpu.ledger.steps)


def test_stop_passes_through_the_script():
    """The script's `except Exception` does not see the end, its `finally` does."""
    seen = []
    with h100(max_steps=1):
        model = nn.Linear(64, 64).cuda()
        try:
            try:
                train(model, torch.optim.SGD(model.parameters()))
            except Exception:
                seen.append("except")
            finally:
                seen.append("finally")
        except StopSimulation:
            seen.append("stopped")

    assert ["finally", "stopped"] == seen


def test_on_step():
    """Who watches is told each step's peaks."""
    peaks = []
    with h100(max_steps=3, on_step=peaks.append) as gpu:
        model = nn.Linear(64, 64).cuda()
        with pytest.raises(StopSimulation):
            train(model, torch.optim.AdamW(model.parameters()))

    assert gpu.ledger.steps == peaks
    assert 1 == len({peak.peak_allocated_bytes for peak in peaks})
    assert all(len(peak.backward_began) == 1 for peak in peaks)


def test_several_optimizers(virtual_gpu):
    """Once both optimizers of a GAN are known, a step ends when both have stepped."""
    generator, critic = nn.Linear(64, 64).cuda(), nn.Linear(64, 1).cuda()
    optimizers = [torch.optim.Adam(module.parameters()) for module in (generator, critic)]
    ends = []
    for _ in range(3):
        critic(generator(batch()).detach()).sum().backward()
        optimizers[1].step()
        ends.append(virtual_gpu.loop.step)
        critic(generator(batch())).sum().backward()
        optimizers[0].step()
        ends.append(virtual_gpu.loop.step)

    assert [2, 2, 3, 3, 4, 4] == ends


def stepped(loop, *optimizers):
    """The step that each of `optimizers`, stepping in this order, leaves the loop in."""
    return [(loop.optimizer_stepped(optimizer), loop.step)[1] for optimizer in optimizers]


def optimizer_of(*sizes):
    """An optimizer of parameters of `sizes`."""
    return torch.optim.SGD([nn.Parameter(torch.ones(size)) for size in sizes])


def test_a_replaced_optimizer_is_not_waited_for(virtual_gpu):
    """However long the script keeps it; its successor, of the same shapes, has stepped twice without it."""
    before, after = optimizer_of(3, 4), optimizer_of(3, 4)

    assert [2, 3, 3, 4, 5] == stepped(virtual_gpu.loop, before, before, after, after, after)


def test_an_optimizer_of_other_parameters_is_waited_for(virtual_gpu):
    """A critic steps five times for each step of the generator."""
    generator, critic = optimizer_of(3, 4), optimizer_of(5)

    assert [2, 2, 2, 2, 2, 2, 3] == stepped(virtual_gpu.loop, generator, *[critic] * 5, generator)


def test_twins_are_waited_for(virtual_gpu):
    """Models of one kind, each with its optimizer, of which the first steps twice."""
    twins = [optimizer_of(3), optimizer_of(3)]

    assert [2, 2, 3, 3, 3, 4] == stepped(virtual_gpu.loop, *twins, twins[0], twins[0], twins[0], twins[1])


def test_optimizers_are_seen_anew_after_a_failure():
    """Whoever catches it goes on with others, and may keep the old ones."""
    before, after = optimizer_of(3), optimizer_of(4)
    with card_with(MIB) as gpu:
        assert [2, 3] == stepped(gpu.loop, before, before)
        with pytest.raises(torch.OutOfMemoryError):
            batch(MIB)

        assert [4, 5] == stepped(gpu.loop, after, after)


def test_accumulation_is_one_step(virtual_gpu):
    """Micro-batches before an optimizer step belong to it, with a backward pass each."""
    model = nn.Linear(64, 64).cuda()
    optimizer = torch.optim.SGD(model.parameters())
    for _ in range(3):
        model(batch()).sum().backward()
    optimizer.step()

    assert 1 == len(virtual_gpu.ledger.steps)
    assert 3 == len(virtual_gpu.ledger.steps[0].backward_began)


def test_peaks_of_a_step(virtual_gpu):
    """A step's peak is the most that was allocated in it, whatever the script resets."""
    model = nn.Linear(64, 64).cuda()
    optimizer = torch.optim.SGD(model.parameters())
    model(batch(1024)).sum().backward()
    highest = torch.cuda.max_memory_allocated()
    torch.cuda.reset_peak_memory_stats()
    optimizer.step()

    assert [highest] == [step.peak_allocated_bytes for step in virtual_gpu.ledger.steps]
    assert highest == virtual_gpu.ledger.peaks.allocated_bytes


def test_nothing_is_counted_without_recording():
    """Without `record` the script runs and no block is taken."""
    with h100(record=False) as gpu:
        model = nn.Linear(64, 64).cuda()
        train(model, torch.optim.AdamW(model.parameters()), steps=2)

    assert [] == gpu.ledger.births


def test_exception_in_a_forward(virtual_gpu):
    """An exception that the script catches leaves no module and no phase behind."""
    model = nn.Linear(64, 64).cuda()
    with pytest.raises(RuntimeError):
        model(torch.randn(2, 3, device="cuda"))
    with pytest.raises(RuntimeError):
        batch().sum().backward()

    assert "" == virtual_gpu.loop.module
    assert Phase.FORWARD is virtual_gpu.loop.phase


def test_exception_in_an_optimizer_step():
    """Its phase ends with it: what the script does then is no part of the step."""
    with card_with(600 * MIB) as gpu:
        weight = nn.Parameter(torch.ones(32 * MIB, device="cuda"))
        weight.grad = torch.ones_like(weight)
        with pytest.raises(torch.OutOfMemoryError):
            torch.optim.Adam([weight]).step()
        (failure,) = gpu.failures.records

        assert Phase.OPTIMIZER is failure.phase
        assert Phase.INIT is gpu.loop.phase
        torch.optim.SGD([weight]).step()
        assert Phase.INIT is gpu.loop.phase
