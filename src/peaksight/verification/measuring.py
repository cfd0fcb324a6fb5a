"""How far arrays of several runs are apart, whichever library they are of."""

from dataclasses import dataclass
from typing import Any, Generic, Protocol, TypeVar

from peaksight.records.certificate import Kind, TensorDifference

Array = TypeVar("Array")


class Arrays(Protocol[Array]):
    """What is asked of a library of arrays, which are subtracted with `-`."""

    def wide(self, array: Array) -> Array:
        """`array` in float64."""

    def norm(self, array: Array) -> float:
        """Its Euclidean norm."""

    def num_elements(self, array: Array) -> int:
        """How many numbers it has."""

    def middle(self, array: Array) -> float:
        """The absolute value in the middle of those that are not zero, 0.0 where all are."""

    def resolution(self, array: Array) -> float:
        """The relative spacing of numbers of its type, 0.0 of integers."""

    def is_finite(self, array: Array) -> bool:
        """Whether it has neither NaN nor infinity."""

    def is_bitwise(self, one: Array, other: Array) -> bool:
        """Whether both hold the same bits, of one type and shape."""

    def random(self, like: Array, seed: int) -> Array:
        """Normal numbers in float64, in the shape of `like`."""

    def scaled(self, array: Array, factor: float) -> Array:
        """`array` times `factor`."""

    def sum(self, array: Array, error: Array) -> Array:
        """`array` plus `error`, in the type of `array`."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Five(Generic[Array]):
    """One array in the runs; those in float64 only where they were made."""

    original: Array
    repeated: Array
    changed: Array
    original_exact: Array | None = None
    changed_exact: Array | None = None


def measured(kind: Kind, name: str, step: int, rank: int, five: Five[Any], arrays: Arrays[Any]) -> TensorDifference:
    """How far the runs are apart in one array."""
    original, changed = arrays.wide(five.original), arrays.wide(five.changed)
    one, other = five.original_exact, five.changed_exact
    exact: dict[str, float] = {}
    if one is not None and other is not None:
        exact = {
            "original_error": arrays.norm(original - one),
            "changed_error": arrays.norm(changed - other),
            "exact_difference": arrays.norm(other - one),
            "original_rounding": _rounding(original - one, original, arrays),
            "changed_rounding": _rounding(changed - other, original, arrays),
        }
    return TensorDifference(
        kind=kind,
        name=name,
        step=step,
        rank=rank,
        norm=arrays.norm(original),
        difference=arrays.norm(changed - original),
        repeated=arrays.norm(arrays.wide(five.repeated) - original),
        resolution=arrays.resolution(five.original),
        bitwise=arrays.is_bitwise(five.original, five.changed),
        finite=arrays.is_finite(changed),
        **exact,
    )


def _rounding(errors: Any, values: Any, arrays: Arrays[Any]) -> float:
    """The error in the middle of those that are not zero, in relation to the size of the values."""
    size = arrays.norm(values) / max(arrays.num_elements(values), 1) ** 0.5
    return arrays.middle(errors) / size if size else 0.0
