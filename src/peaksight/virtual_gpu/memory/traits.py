"""What decides how the calls of an operator are recorded, found once for each operator."""

from dataclasses import dataclass
from functools import cache
from typing import Any

from peaksight.virtual_gpu.evidence.labels_seen import LOSSES
from peaksight.virtual_gpu.evidence.witness import SLICES
from peaksight.virtual_gpu.memory.roles import COPIES
from peaksight.virtual_gpu.ranks.collectives import functional_kind
from peaksight.virtual_gpu.tensors.results import may_allocate, may_resize


@dataclass(frozen=True, slots=True)
class Traits:
    """`name` is the operator's."""

    name: str
    may_allocate: bool
    may_resize: bool
    is_collective: bool
    is_copy: bool
    is_loss: bool
    is_slice: bool


@cache
def traits_of(func: Any) -> Traits:
    """Those of the operator `func`."""
    return Traits(
        name=func.name(),
        may_allocate=may_allocate(func),
        may_resize=may_resize(func),
        is_collective=functional_kind(func) is not None,
        is_copy=func in COPIES,
        is_loss=func in LOSSES,
        is_slice=func in SLICES,
    )
