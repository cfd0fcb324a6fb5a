"""Whether runs that differ differ by chance alone: other random masks, or a coarser rounding, of the same objective."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from peaksight.records.certificate import Judged, TensorDifference
from peaksight.records.training import Masks
from peaksight.verification import outcome
from peaksight.verification.distances import Runs, differences
from peaksight.verification.experiment import SLOPE_NUDGE, Experiment
from peaksight.verification.invariants import dropout_of, losses_of
from peaksight.verification.judging import MARGIN, still_different

# The relative accuracy of a central difference whose step is of the order of the cube root of float64's spacing.
_SLOPE_ACCURACY = 6e-6


@dataclass(frozen=True, slots=True, kw_only=True)
class Noise:
    """`found` is the kind of noise, empty for none; `reasons` say what speaks for or against it."""

    found: str
    reasons: tuple[str, ...]


def rounding_noise(experiment: Experiment, judged: Sequence[Judged]) -> Noise:
    """Both compute the same in float64, and one of them rounds more coarsely."""
    casts = {step.autocast for run in experiment.changed.ranks for step in run.steps} - {""}
    name = f"rounding of {', '.join(sorted(casts))} autocast" if casts else "coarser rounding"
    return Noise(found=name, reasons=outcome.rounded_more_coarsely(judged))


def mask_noise(experiment: Experiment, known: Sequence[TensorDifference]) -> Noise:
    """Only their random masks are others: both compute the same without them, or with the same ones."""
    if experiment.exact is None:
        return Noise(found="", reasons=())
    rates = [dropout_of(each.ranks) for each in experiment.exact]
    if not rates[0] and not rates[1]:
        return Noise(found="", reasons=())
    if rates[0] != rates[1]:
        return _by_uniform_masks(experiment, known, rates)
    still = _still_different(experiment, known, "mean")
    if still is not None:
        return Noise(found="", reasons=(f"without dropout, {still} still differs",))
    return _by_slopes(experiment)


def _by_uniform_masks(
    experiment: Experiment, known: Sequence[TensorDifference], rates: Sequence[Mapping[float, int]]
) -> Noise:
    """A script may make its masks of `torch.rand` by itself: with the same numbers they are the same masks."""
    if _still_different(experiment, known, "uniform") is not None:
        return Noise(found="", reasons=(f"dropout differs: {_words(rates[0])} against {_words(rates[1])}",))
    reason = "in float64, with masks made of the same uniform numbers, both compute the same"
    return Noise(found="other dropout masks", reasons=(reason,))


def _by_slopes(experiment: Experiment) -> Noise:
    """Masks that are others in the recomputation than in the forward give gradients that are those of no loss."""
    errors = [slope_error(experiment, changed=changed) for changed in (False, True)]
    if errors[0] is None or errors[1] is None:
        return Noise(found="", reasons=("the slope of the loss could not be seen",))
    known = [error or 0.0 for error in errors]
    if known[1] > MARGIN * max(known[0], _SLOPE_ACCURACY):
        reason = f"with dropout, the gradient is not that of the loss: their slopes differ by {known[1]:.1e}"
        return Noise(found="", reasons=(reason,))
    reasons = (
        "without dropout both compute the same in float64",
        f"with it, the gradient of each is that of its own loss: the slopes agree to {max(known):.0e}",
        "as many elements are dropped at the same rates",
    )
    return Noise(found="other dropout masks", reasons=reasons)


def slope_error(experiment: Experiment, *, changed: bool) -> float | None:
    """The relative difference of the slope of the first loss and of what its gradients say."""
    assert experiment.exact is not None
    slopes = [run.steps[0].slope for run in experiment.exact[changed].ranks]
    forth, back = (losses_of(each.ranks)[0] for each in experiment.nudged(changed=changed))
    measured = (forth - back) / (2 * SLOPE_NUDGE)
    if any(slope is None for slope in slopes):
        return None
    slope = sum(each or 0.0 for each in slopes) / len(slopes)
    return abs(measured - slope) / max(abs(measured), abs(slope), 1e-300)


def _still_different(experiment: Experiment, known: Sequence[TensorDifference], masks: Masks) -> str | None:
    """The tensor that is furthest off with `masks`, held to the relative rounding with their own; None for none."""
    original, changed = experiment.masked(masks)
    return still_different(differences(Runs(original=original, repeated=original, changed=changed)), known)


def _words(rates: Mapping[float, int]) -> str:
    return ", ".join(f"{count} elements at {rate:g}" for rate, count in sorted(rates.items())) or "none"
