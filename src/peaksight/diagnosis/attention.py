"""Attention that is computed in steps: a product, a softmax over it, and a product with what that gives."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from peaksight.diagnosis.evidence import Evidence
from peaksight.diagnosis.shapes import shape_of
from peaksight.records import Allocation, Phase

PRODUCTS = {"aten::bmm", "aten::baddbmm"}
SAFE_SOFTMAX = "aten::_safe_softmax"
SOFTMAX = {"aten::_softmax", SAFE_SOFTMAX}
DROPOUT = {"aten::native_dropout", "aten::bernoulli_.float"}
# Where `_safe_softmax` is recorded in its steps: the one that finds rows that are masked as a whole. Only the math
# kernel of scaled_dot_product_attention calls it (ATen/native/transformers/attention.cpp).
MASKED_ROWS = "aten::isneginf"
SOFTMAX_BACKWARD = "aten::_softmax_backward_data"
# Scaling, a bias, a mask and casts are between the products, a few blocks each.
MAX_BLOCKS_BETWEEN = 16

# The module of a call, and the sizes of its scores: (rows and columns, elements).
_Place = tuple[str, tuple[int, ...], int]


@dataclass(frozen=True, slots=True)
class AttentionCall:
    """One call: the probabilities that its softmax gave, and all blocks of their shape between the two products.

    `is_sdpa` says whether it is the math kernel of scaled_dot_product_attention.
    """

    probabilities: Allocation
    scores: tuple[Allocation, ...]
    is_sdpa: bool


def attention_calls(evidence: Evidence) -> Iterator[AttentionCall]:
    """Every call of the run, recomputed ones too: a softmax over the last dimension of what a batched product gave."""
    allocations = evidence.capture.allocations
    for index, allocation in enumerate(allocations):
        if allocation.op in SOFTMAX and len(shape_of(allocation).sizes) >= 3:
            call = _call_around(allocations, index)
            if call is not None:
                yield call


def blocks_of(evidence: Evidence, calls: Sequence[AttentionCall]) -> set[Allocation]:
    """What a fused kernel would not make of `calls`: scores, probabilities, dropout masks, and their gradients."""
    places = {place_of(call.probabilities) for call in calls}
    backward = (a for a in evidence.capture.allocations if a.phase is Phase.BACKWARD and not a.grad_enabled)
    gradients = {a for a in backward if place_of(a) in places or _is_workspace_of(a, places)}
    return gradients.union(*(call.scores for call in calls))


def _call_around(allocations: Sequence[Allocation], index: int) -> AttentionCall | None:
    """The call whose softmax is at `index`, None where it is not between two batched products."""
    first = _first_product(allocations, index)
    last = _second_product(allocations, index)
    if first is None or last is None:
        return None
    of_shape = [a for a in allocations[first:last] if _looks(a) == _looks(allocations[index])]
    return AttentionCall(allocations[index], tuple(of_shape), _is_sdpa(allocations[index:last]))


def _is_sdpa(allocations: Sequence[Allocation]) -> bool:
    """Whether the softmax that comes first is a safe one."""
    softmax, *after = allocations
    return softmax.op == SAFE_SOFTMAX or any(a.op == MASKED_ROWS and _looks(a) == _looks(softmax) for a in after)


def _first_product(allocations: Sequence[Allocation], index: int) -> int | None:
    """Where the product that gave the scores is."""
    for place in range(index - 1, max(index - 1 - MAX_BLOCKS_BETWEEN, -1), -1):
        if allocations[place].op in PRODUCTS and _looks(allocations[place]) == _looks(allocations[index]):
            return place
    return None


def _second_product(allocations: Sequence[Allocation], index: int) -> int | None:
    """Where the product of the probabilities with the values is: it has as many rows."""
    rows = shape_of(allocations[index]).sizes[-2]
    for place in range(index + 1, min(index + 1 + MAX_BLOCKS_BETWEEN, len(allocations))):
        if allocations[place].op in PRODUCTS:
            sizes = shape_of(allocations[place]).sizes
            return place if sizes[-2] == rows else None
    return None


def _looks(allocation: Allocation) -> tuple[tuple[int, ...], int]:
    """Rows, columns, and the elements in all: the batch and the heads may be one dimension or two."""
    shape = shape_of(allocation)
    return shape.sizes[-2:], shape.numel


def place_of(allocation: Allocation) -> _Place:
    """The module and the sizes of scores, which a call that runs again has too."""
    return allocation.module, *_looks(allocation)


def _is_workspace_of(allocation: Allocation, places: set[_Place]) -> bool:
    if allocation.op != SOFTMAX_BACKWARD or allocation.tensor:
        return False
    return any(allocation.module == module for module, *_ in places)
