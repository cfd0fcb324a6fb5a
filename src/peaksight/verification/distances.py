"""Measures how far the tensors of recorded runs are apart."""

from collections.abc import Iterator
from dataclasses import dataclass

import torch
from torch import Tensor

from peaksight.records.certificate import Kind, TensorDifference
from peaksight.verification.matching import Match, match_names
from peaksight.verification.runs import Recording, Tensors

_KINDS: tuple[Kind, ...] = ("gradient", "parameter", "buffer", "state")


@dataclass(frozen=True, slots=True, kw_only=True)
class Runs:
    """The recordings of one comparison; those in float64 only where they were made."""

    original: Recording
    repeated: Recording
    changed: Recording
    original_exact: Recording | None = None
    changed_exact: Recording | None = None

    @property
    def num_steps(self) -> int:
        """How many optimizer steps every run has."""
        runs = (self.original, self.repeated, self.changed, self.original_exact, self.changed_exact)
        return min(len(rank.steps) for run in runs if run for rank in run.ranks)

    @property
    def num_ranks(self) -> int:
        """The larger world: a rank of it has that of the smaller one, or its last, beside it."""
        return max(len(self.original.ranks), len(self.changed.ranks))


@dataclass(frozen=True, slots=True, kw_only=True)
class Five:
    """One tensor in the runs."""

    original: Tensor
    repeated: Tensor
    changed: Tensor
    original_exact: Tensor | None = None
    changed_exact: Tensor | None = None


def differences(runs: Runs) -> Iterator[TensorDifference]:
    """Every tensor that both have, in each step of each rank."""
    for step in range(1, runs.num_steps + 1):
        for rank in range(runs.num_ranks):
            for kind, name, five in tensors_of(runs, rank, step):
                yield difference(kind, name, step, rank, five)


def tensors_of(runs: Runs, rank: int, step: int) -> Iterator[tuple[Kind, str, Five]]:
    """The tensors of one step that both have, named as in the original."""
    original, repeated, changed = (run.tensors(rank, step) for run in (runs.original, runs.repeated, runs.changed))
    exact = [run.tensors(rank, step) if run else None for run in (runs.original_exact, runs.changed_exact)]
    for kind in _KINDS:
        for name, other in match_of(original, changed, kind).names.items():
            yield (
                kind,
                other,
                Five(
                    original=original[kind][other],
                    repeated=repeated[kind].get(other, original[kind][other]),
                    changed=changed[kind][name],
                    original_exact=_find(exact[0], kind, other),
                    changed_exact=_find(exact[1], kind, name),
                ),
            )


def match_of(original: Tensors, changed: Tensors, kind: Kind) -> Match:
    """Which tensor of the changed run is which of the original."""
    shapes = [{name: tuple(tensor.shape) for name, tensor in run[kind].items()} for run in (original, changed)]
    return match_names(*shapes)


def difference(kind: Kind, name: str, step: int, rank: int, five: Five) -> TensorDifference:
    """How far the runs are apart in one tensor."""
    original, changed = five.original.double(), five.changed.double()
    one, other = five.original_exact, five.changed_exact
    exact: dict[str, float] = {}
    if one is not None and other is not None:
        exact = {
            "original_error": _norm(original - one),
            "changed_error": _norm(changed - other),
            "exact_difference": _norm(other - one),
            "original_rounding": _rounding(original - one, original),
            "changed_rounding": _rounding(changed - other, original),
        }
    return TensorDifference(
        kind=kind,
        name=name,
        step=step,
        rank=rank,
        norm=_norm(original),
        difference=_norm(changed - original),
        repeated=_norm(five.repeated.double() - original),
        resolution=_resolution(five.original),
        bitwise=is_bitwise(five.original, five.changed),
        finite=bool(changed.isfinite().all()),
        **exact,
    )


def is_bitwise(one: Tensor, other: Tensor) -> bool:
    """Whether two tensors hold the same bits."""
    if one.dtype is not other.dtype or one.shape != other.shape:
        return False
    bits = [tensor.contiguous().flatten().view(torch.uint8) for tensor in (one, other)]
    return torch.equal(*bits)


def _find(tensors: Tensors | None, kind: Kind, name: str) -> Tensor | None:
    found = tensors[kind].get(name) if tensors else None
    return found.double() if found is not None else None


def _norm(tensor: Tensor) -> float:
    return float(torch.linalg.vector_norm(tensor))


def _rounding(errors: Tensor, values: Tensor) -> float:
    """The error in the middle of those that are not zero, in relation to the size of the values."""
    errors = errors[errors != 0].abs()
    size = _norm(values) / max(values.numel(), 1) ** 0.5
    return float(errors.median()) / size if errors.numel() and size else 0.0


def _resolution(tensor: Tensor) -> float:
    return torch.finfo(tensor.dtype).eps if tensor.is_floating_point() else 0.0
