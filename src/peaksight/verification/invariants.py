"""What must be the same of two runs whatever their numbers: steps, samples, learning rates, what is trained."""

from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import replace
from math import isclose

from peaksight.records.certificate import Invariant, Mechanism
from peaksight.records.training import DIGESTS, TrainingRun, TrainingStep

Ranks = Sequence[TrainingRun]

# Learning rates are computed in Python's floats, some by formula, some from the last one.
_SAME_LR = 1e-9


def invariants(original: Ranks, changed: Ranks) -> Iterator[Invariant]:
    """Each as it is in both; those that are the same in every step once, the others step by step."""
    yield _whole("trainable parameters", *(ranks[0].trainable for ranks in (original, changed)))
    yield _whole("optimizer steps", *(_steps(ranks) for ranks in (original, changed)))
    for number, (one, other) in enumerate(zip(_by_step(original), _by_step(changed), strict=False), start=1):
        yield from _of_step(number, one, other)


def same_samples(original: Ranks, changed: Ranks) -> bool | None:
    """Whether the models were called with the same samples in each step; None where that was not seen."""
    answers = [
        _same_columns(_columns(one), _columns(other))
        for one, other in zip(_by_step(original), _by_step(changed), strict=False)
    ]
    return None if None in answers else all(answers)


def mechanisms(original: Ranks, changed: Ranks) -> tuple[Mechanism, ...]:
    """What of the things that go wrong has happened in the recorded steps."""
    pairs = zip(_exercised(original).items(), _exercised(changed).values(), strict=True)
    return tuple(Mechanism(name=name, original=one, changed=other) for (name, one), other in pairs)


def dropout_of(ranks: Ranks) -> Counter[float]:
    """The elements of random masks by their rate, in all steps of all ranks."""
    total: Counter[float] = Counter()
    for step in _all_steps(ranks):
        total.update({each.rate: each.elements for each in step.dropout})
    return total


def losses_of(ranks: Ranks) -> list[float]:
    """The loss of each step: what `backward()` was called on, added up and averaged over the ranks as gradients are."""
    return [sum(sum(step.losses) for step in steps) / len(steps) for steps in _by_step(ranks)]


def draws(ranks: Ranks) -> bool:
    """Whether random numbers are drawn from step to step."""
    return len({(run.rank, step.random_state) for run in ranks for step in run.steps}) > len(ranks)


def _steps(ranks: Ranks) -> str:
    counts = sorted({len(run.steps) for run in ranks})
    return " or ".join(map(str, counts))


def _by_step(ranks: Ranks) -> list[list[TrainingStep]]:
    return [list(steps) for steps in zip(*(run.steps for run in ranks), strict=False)]


def _all_steps(ranks: Ranks) -> list[TrainingStep]:
    return [step for run in ranks for step in run.steps]


def _of_step(number: int, one: list[TrainingStep], other: list[TrainingStep]) -> Iterator[Invariant]:
    yield _tells(number, "samples", *(sum(step.samples for step in steps) for steps in (one, other)))
    tokens = [sum(sum(step.tokens) for step in steps) for steps in (one, other)]
    if all(tokens):
        yield _tells(number, "supervised tokens", *tokens)
    lrs = [sorted({lr for step in steps for lr in step.lrs}) for steps in (one, other)]
    same = len(lrs[0]) == len(lrs[1]) and all(map(_close, *lrs))
    yield Invariant(name="learning rate", original=_numbers(lrs[0]), changed=_numbers(lrs[1]), same=same, step=number)
    yield from _schedulers(number, one[0], other[0])
    yield _at(number, "parameters without a gradient", *(_without_gradient(steps) for steps in (one, other)))


def _schedulers(number: int, one: TrainingStep, other: TrainingStep) -> Iterator[Invariant]:
    """Of classes that both have: a schedule may be written in two ways."""
    for name in sorted({name for name, _ in one.schedulers} & {name for name, _ in other.schedulers}):
        counts = [[count for each, count in step.schedulers if each == name] for step in (one, other)]
        yield _at(number, f"steps of {name}", *(", ".join(map(str, each)) for each in counts))


def _without_gradient(steps: list[TrainingStep]) -> int:
    return len({name for step in steps for name in step.without_gradient})


def _columns(steps: list[TrainingStep]) -> dict[str, int]:
    total: Counter[str] = Counter()
    for step in steps:
        for column in step.columns:
            total[column.name] += int(column.digest, 16)
    return {name: digest % DIGESTS for name, digest in total.items()}


def _same_columns(one: dict[str, int], other: dict[str, int]) -> bool | None:
    """By the first argument of the model, which may have another name in the other script."""
    if not one or not other:
        return None
    return next(iter(one.values())) in other.values() or next(iter(other.values())) in one.values()


def _exercised(ranks: Ranks) -> dict[str, bool]:
    steps = _all_steps(ranks)
    windows = [len(step.losses) for step in steps]
    return {
        "two or more checkpointed regions": any(step.checkpointed_regions >= 2 for step in steps),
        "dropout active": any(step.dropout for step in steps),
        "accumulation of two or more": any(count >= 2 for count in windows),
        "unequal lengths": any(len(set(step.tokens)) > 1 for step in steps) or _unequal_ranks(ranks),
        "a shorter last window": bool(windows) and windows[-1] < max(windows),
        "several ranks": len(ranks) > 1,
        "batch-norm statistics": any(run.running_statistics for run in ranks),
        "gradient clipping": any(step.clippings for step in steps),
        "a changing learning rate": len({step.lrs for step in ranks[0].steps}) > 1,
        "autocast": any(step.autocast for step in steps),
        "parameters without a gradient": any(step.without_gradient for step in steps),
    }


def _unequal_ranks(ranks: Ranks) -> bool:
    return any(len({sum(step.tokens) for step in steps}) > 1 for steps in _by_step(ranks))


def _whole(name: str, original: object, changed: object) -> Invariant:
    return _at(0, name, original, changed)


def _at(step: int, name: str, original: object, changed: object) -> Invariant:
    return Invariant(name=name, original=str(original), changed=str(changed), same=original == changed, step=step)


def _tells(step: int, name: str, original: object, changed: object) -> Invariant:
    """One that explains a difference, but makes none by itself: the gradients show what it does."""
    return replace(_at(step, name, original, changed), decides=False)


def _close(one: float, other: float) -> bool:
    return isclose(one, other, rel_tol=_SAME_LR)


def _numbers(values: list[float]) -> str:
    return ", ".join(f"{value:.6g}" for value in values)
