"""The parts of a certificate that say what was found, in words and in few numbers."""

from collections.abc import Iterable, Sequence
from math import isfinite

from peaksight.records.certificate import Judged, LossDifference, TensorDifference
from peaksight.verification.distances import Runs, differences, match_of
from peaksight.verification.experiment import Experiment
from peaksight.verification.invariants import losses_of, same_samples
from peaksight.verification.outcome import finite


def loss(experiment: Experiment) -> LossDifference | None:
    """The step in which the losses are furthest apart, None where none was seen in one of the runs."""
    pairs = list(zip(losses_of(experiment.original.ranks), losses_of(experiment.changed.ranks), strict=False))
    if not any(step.losses for step in experiment.original.ranks[0].steps):
        return None
    number = max(range(len(pairs)), key=lambda each: abs(pairs[each][0] - pairs[each][1]))
    return LossDifference(step=number + 1, original=finite(pairs[number][0]), changed=finite(pairs[number][1]))


def losses_apart(experiment: Experiment) -> tuple[str, ...]:
    """The sentence about losses of other bits, where every tensor has the same."""
    furthest = loss(experiment)
    if furthest is None or furthest.original == furthest.changed:
        return ()
    numbers = f"{furthest.original} and {furthest.changed} in step {furthest.step}"
    return (f"the losses have not: {numbers}, of which nothing reached a gradient",)


def noise_floor(experiment: Experiment) -> float:
    """The largest relative difference between the original and its repetition."""
    again = Runs(original=experiment.original, repeated=experiment.repeated, changed=experiment.repeated)
    return max((each.relative for each in differences(again) if isfinite(each.relative)), default=0.0)


def missing_tensors(experiment: Experiment) -> list[str]:
    """Sentences about tensors that only one of the runs has."""
    original, changed = experiment.original.tensors(0, 1), experiment.changed.tensors(0, 1)
    found = []
    for kind in ("gradient", "parameter", "buffer"):
        match = match_of(original, changed, kind)
        if match.missing:
            found.append(f"{_names(match.missing)} of the original has no {kind} in the changed run")
        if match.added:
            found.append(f"{_names(match.added)} of the changed run has no {kind} in the original")
    return found


def _names(names: Sequence[str]) -> str:
    return names[0] if len(names) == 1 else f"{names[0]} and {len(names) - 1} more"


def notes(experiment: Experiment) -> tuple[str, ...]:
    """What a reader has to know beside the verdict."""
    found = [f"{kind} of the plan changed nothing in this run" for kind in experiment.changed.ranks[0].without_effect]
    match = match_of(experiment.original.tensors(0, 1), experiment.changed.tensors(0, 1), "parameter")
    if match.how != "name":
        found.append(f"parameters were matched by the {match.how}")
    if unmatched := experiment.changed.ranks[0].unmatched_weights:
        found.append(f"not started from the original's weights: {_names(unmatched)}")
    if experiment.repeated.ranks[0].own_weights is False:
        found.append("the original does not seed its weights: its repetition got those of the first run")
    return tuple(found)


def weights(experiment: Experiment) -> str:
    """How both came to start from the same weights."""
    own = experiment.changed.ranks[0].own_weights
    if own is None:
        return "not seen"
    return "the same by their seeds" if own else "copied from the original, with the random state"


def batches(experiment: Experiment) -> str:
    """Whether both got the same samples."""
    same = same_samples(experiment.original.ranks, experiment.changed.ranks)
    return {True: "the same samples in every step", False: "other samples", None: "not seen"}[same]


def reference(experiment: Experiment, found: Iterable[TensorDifference]) -> str:
    """What the runs in float64 told."""
    if "exact" not in vars(experiment):
        return "not needed: every bit is the same"
    if experiment.exact is None:
        return f"none: {experiment.why_not_exact}"
    errors = [each.original_error / each.norm for each in found if each.original_error is not None and each.norm]
    exact = [each.exact_difference / each.norm for each in found if each.exact_difference is not None and each.norm]
    return (
        f"the original is up to {max(errors, default=0.0):.1e} from its float64 run; "
        f"the float64 runs are up to {max(exact, default=0.0):.1e} apart"
    )


def within(experiment: Experiment, judged: Sequence[Judged]) -> str:
    """Why it is rounding."""
    excess = max(each.excess for each in judged)
    how = "one rounding of its weights" if experiment.exact is None else "its distance from float64"
    return f"no tensor differs by more than the original's own rounding, judged by {how}: at most {excess:.1g} of it"
