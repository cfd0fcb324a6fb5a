"""Decides, from distances alone, whether two runs differ by more than rounding.

A tensor may differ by what the original's own rounding comes to: how far the original is from its float64 run, from
its repetition, or, where luck made that nothing, as far as the tensors of its kind typically are. The changed run has
no part in that, except that it can only make it stricter: neither run may round much worse than the other.
"""

from collections import defaultdict
from collections.abc import Callable, Iterable, Sequence
from dataclasses import replace
from math import inf, isnan
from statistics import median
from typing import Any

from peaksight.records.certificate import Judged, TensorDifference

# How many times the other's rounding one run's may be: other kernels and other orders of a sum are within it, a
# narrower dtype (2**13 times that of float32 and more) is not.
MARGIN = 16.0
# The same once an optimizer has acted on it: Adam moves a weight by the sign of a gradient of nearly zero, and what
# comes of that is a matter of luck.
MARGIN_AFTER_UPDATES = MARGIN**2

Differences = Sequence[TensorDifference]


def judge(differences: Differences) -> list[Judged]:
    """Each tensor with its tolerance, and how often that it differs; over one is not rounding."""
    typical = _typical(differences, lambda each: (each.original_error or 0.0) / each.norm if each.norm else 0.0)
    original = _typical(differences, lambda each: each.original_rounding or 0.0)
    changed = _typical(differences, lambda each: each.changed_rounding or 0.0)
    return [_judge(each, *(side[_group(each)] for side in (typical, original, changed))) for each in differences]


def is_bitwise(differences: Iterable[TensorDifference]) -> bool:
    """Whether all have the same bits."""
    return all(each.bitwise for each in differences)


def still_different(found: Iterable[TensorDifference], known: Differences) -> str | None:
    """The tensor that is furthest off of runs in float64, held to the relative rounding in `known`; None for none.

    `found` has the differences between the two, of the tensors that `known` has with their rounding.
    """
    rounding = {_key(each): each for each in known}
    judged = judge([_held_to(each, rounding[_key(each)]) for each in found if _key(each) in rounding])
    worst = max(judged, key=lambda each: each.exact_excess, default=None)
    return worst.tensor.name if worst is not None and worst.exact_excess > 1 else None


def _held_to(each: TensorDifference, known: TensorDifference) -> TensorDifference:
    scale = each.norm / known.norm if known.norm else 1.0
    return replace(
        each,
        resolution=known.resolution,
        exact_difference=each.difference,
        original_error=(known.original_error or 0.0) * scale,
        original_rounding=known.original_rounding,
        changed_rounding=known.changed_rounding,
    )


def _key(each: TensorDifference) -> tuple[str, str, int, int]:
    return each.kind, each.name, each.step, each.rank


def _judge(each: TensorDifference, typical: float, original: float, changed: float) -> Judged:
    """The last three are typical of the kind: the original's error, and the rounding of both."""
    tolerance = max(each.original_error or 0.0, each.repeated, typical * each.norm)
    if each.bitwise:
        return Judged(tensor=each, tolerance=tolerance, exact_excess=0.0, rounding_excess=0.0)
    if not each.finite or isnan(each.changed_rounding or 0.0):
        return Judged(tensor=each, tolerance=tolerance, exact_excess=inf, rounding_excess=inf)
    if each.exact_difference is None or each.original_rounding is None or each.changed_rounding is None:
        excess = _ratio(each.difference, MARGIN * tolerance)
        return Judged(tensor=each, tolerance=tolerance, exact_excess=excess, rounding_excess=excess)
    sides = max(each.original_rounding, original), max(each.changed_rounding, changed)
    margin = MARGIN if each.step == 1 and each.kind != "parameter" else MARGIN_AFTER_UPDATES
    rounding = max(_ratio(sides[0], margin * sides[1]), _ratio(sides[1], margin * sides[0]))
    exact = _ratio(each.exact_difference, tolerance)
    return Judged(tensor=each, tolerance=tolerance, exact_excess=exact, rounding_excess=rounding)


def _typical(differences: Differences, error: Callable[[TensorDifference], float]) -> dict[tuple[Any, ...], float]:
    """The relative error of a tensor in the middle of its kind and step, at least half its dtype's spacing."""
    errors = defaultdict(list)
    for each in differences:
        errors[_group(each)].append(max(error(each), each.resolution / 2))
    return {group: median(values) for group, values in errors.items()}


def _group(each: TensorDifference) -> tuple[str, int]:
    return each.kind, each.step


def _ratio(value: float, limit: float) -> float:
    """`value` over `limit`; not a number is too far."""
    if value != value:
        return inf
    return value / limit if limit else (inf if value else 0.0)
