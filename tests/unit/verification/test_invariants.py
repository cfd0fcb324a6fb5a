"""What must be the same of two runs, whatever their numbers."""

from dataclasses import replace

import pytest

from peaksight.records.training import DIGESTS, Column, Dropout, TrainingRun, TrainingStep
from peaksight.verification.invariants import draws, dropout_of, invariants, losses_of, mechanisms, same_samples


def column(digest):
    return Column(name="0", samples=4, digest=f"{digest:x}")


STEP = TrainingStep(
    losses=(2.0,), samples=4, tokens=(8,), columns=(column(5),), lrs=(0.1,), schedulers=(("StepLR", 1),)
)


def ranks_of(*steps, world_size=1, **facts):
    run = TrainingRun(
        rank=0,
        world_size=world_size,
        outcome="ended",
        steps=steps,
        trainable=10,
        random_state_at_start="",
        own_weights=True,
        unmatched_weights=(),
        running_statistics=False,
        device="cpu",
        sources="",
    )
    return tuple(replace(run, rank=rank, **facts) for rank in range(world_size))


def broken(original, changed):
    return {(each.name, each.step, each.decides) for each in invariants(original, changed) if not each.same}


def test_a_run_keeps_its_own():
    """Nothing is reported where nothing differs."""
    assert set() == broken(ranks_of(STEP, STEP), ranks_of(STEP, STEP))


@pytest.mark.parametrize(
    "change, name",
    [
        ({"lrs": (0.05,)}, "learning rate"),
        ({"schedulers": (("StepLR", 4),)}, "steps of StepLR"),
        ({"without_gradient": ("fc.weight",)}, "parameters without a gradient"),
    ],
)
def test_what_changes_the_training_decides(change, name):
    """In the step where it happens."""
    assert {(name, 2, True)} == broken(ranks_of(STEP, STEP), ranks_of(STEP, replace(STEP, **change)))


@pytest.mark.parametrize("change, name", [({"samples": 3}, "samples"), ({"tokens": (4, 3)}, "supervised tokens")])
def test_counts_tell_but_do_not_decide(change, name):
    """The gradients show whether they matter."""
    assert {(name, 1, False)} == broken(ranks_of(STEP), ranks_of(replace(STEP, **change)))


def test_tokens_of_micro_batches_and_ranks_add_up():
    """Eight are eight, however they are split."""
    parts = replace(STEP, samples=2, tokens=(3, 1))

    assert set() == broken(ranks_of(STEP), ranks_of(parts, world_size=2))


def test_the_number_of_steps_decides():
    """A window left out at the end of an epoch."""
    assert {("optimizer steps", 0, True)} == broken(ranks_of(STEP, STEP), ranks_of(STEP))


def test_the_number_of_trained_elements_decides():
    """A freeze."""
    assert {("trainable parameters", 0, True)} == broken(ranks_of(STEP), ranks_of(STEP, trainable=9))


def test_learning_rates_are_computed_in_two_ways():
    """By formula or from the last one: they round differently."""
    assert set() == broken(ranks_of(STEP), ranks_of(replace(STEP, lrs=(0.1 + 1e-16,))))


def test_samples_are_the_same_in_any_order_and_grouping():
    """Their digests add up, modulo their number."""
    halves = replace(STEP, columns=(column(DIGESTS - 3),)), replace(STEP, columns=(column(8),))
    two = tuple(replace(run, steps=(half,)) for run, half in zip(ranks_of(STEP, world_size=2), halves, strict=True))

    assert same_samples(ranks_of(STEP), two) is True
    assert same_samples(ranks_of(STEP), ranks_of(replace(STEP, columns=(column(6),)))) is False
    assert same_samples(ranks_of(STEP), ranks_of(replace(STEP, columns=()))) is None


def test_the_loss_is_the_sum_of_a_window_and_the_mean_of_the_ranks():
    """As gradients are summed and averaged."""
    assert [3.0] == losses_of(ranks_of(replace(STEP, losses=(1.0, 2.0)), world_size=2))


def test_dropout_adds_up_by_rate():
    """Over steps and ranks."""
    step = replace(STEP, dropout=(Dropout(rate=0.1, elements=6),))

    assert {0.1: 24} == dropout_of(ranks_of(step, step, world_size=2))


def test_drawing_is_seen_from_step_to_step():
    """States that stay are those of a script that draws nothing."""
    assert not draws(ranks_of(STEP, STEP))
    assert draws(ranks_of(STEP, replace(STEP, random_state="other")))


@pytest.mark.parametrize(
    "step, name",
    [
        (replace(STEP, checkpointed_regions=2), "two or more checkpointed regions"),
        (replace(STEP, dropout=(Dropout(rate=0.1, elements=6),)), "dropout active"),
        (replace(STEP, losses=(1.0, 1.0)), "accumulation of two or more"),
        (replace(STEP, tokens=(3, 5)), "unequal lengths"),
        (replace(STEP, clippings=1), "gradient clipping"),
        (replace(STEP, autocast="bfloat16"), "autocast"),
    ],
)
def test_a_mechanism_is_exercised_where_it_happens(step, name):
    """One checkpointed region is not two."""
    plain = ranks_of(replace(STEP, checkpointed_regions=1))

    assert {name} == {each.name for each in mechanisms(plain, ranks_of(step)) if each.exercised}


def test_a_shorter_last_window_is_seen():
    """Two micro-batches after windows of four."""
    steps = replace(STEP, losses=(1.0,) * 4), replace(STEP, losses=(1.0,) * 2)
    found = {each.name for each in mechanisms(ranks_of(STEP, STEP), ranks_of(*steps)) if each.exercised}

    assert {"a shorter last window", "accumulation of two or more"} == found
