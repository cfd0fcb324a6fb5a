"""Measures how far the tensors of recorded runs are apart."""

from collections.abc import Iterator
from dataclasses import dataclass

import torch
from torch import Tensor

from peaksight.records.certificate import Kind, TensorDifference
from peaksight.verification.matching import Match, match_names
from peaksight.verification.measuring import Five, measured
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


class TorchArrays:
    """The arithmetic of torch, as `Arrays` describes it."""

    def wide(self, array: Tensor) -> Tensor:
        """In float64."""
        return array.double()

    def norm(self, array: Tensor) -> float:
        """The Euclidean norm."""
        return float(torch.linalg.vector_norm(array))

    def num_elements(self, array: Tensor) -> int:
        """How many numbers it has."""
        return array.numel()

    def middle(self, array: Tensor) -> float:
        """The absolute value in the middle of those that are not zero; of two, the lower one."""
        values = array[array != 0].abs()
        return float(values.median()) if values.numel() else 0.0

    def resolution(self, array: Tensor) -> float:
        """The relative spacing."""
        return torch.finfo(array.dtype).eps if array.is_floating_point() else 0.0

    def is_finite(self, array: Tensor) -> bool:
        """No NaN, no infinity."""
        return bool(array.isfinite().all())

    def is_bitwise(self, one: Tensor, other: Tensor) -> bool:
        """The same bits."""
        return is_bitwise(one, other)

    def random(self, like: Tensor, seed: int) -> Tensor:
        """Normal numbers."""
        return torch.randn(like.shape, generator=torch.Generator().manual_seed(seed), dtype=torch.float64)

    def scaled(self, array: Tensor, factor: float) -> Tensor:
        """Times `factor`."""
        return array * factor

    def sum(self, array: Tensor, error: Tensor) -> Tensor:
        """In the type of the first."""
        return (array.double() + error).to(array.dtype)


TORCH = TorchArrays()


def differences(runs: Runs) -> Iterator[TensorDifference]:
    """Every tensor that both have, in each step of each rank."""
    for step in range(1, runs.num_steps + 1):
        for rank in range(runs.num_ranks):
            for kind, name, five in tensors_of(runs, rank, step):
                yield measured(kind, name, step, rank, five, TORCH)


def tensors_of(runs: Runs, rank: int, step: int) -> Iterator[tuple[Kind, str, Five[Tensor]]]:
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


def first_gradients(runs: Runs) -> dict[str, Five[Tensor]]:
    """The gradients of the first step of rank 0."""
    return {name: five for kind, name, five in tensors_of(runs, 0, 1) if kind == "gradient"}


def is_bitwise(one: Tensor, other: Tensor) -> bool:
    """Whether two tensors hold the same bits."""
    if one.dtype is not other.dtype or one.shape != other.shape:
        return False
    bits = [tensor.contiguous().flatten().view(torch.uint8) for tensor in (one, other)]
    return torch.equal(*bits)


def _find(tensors: Tensors | None, kind: Kind, name: str) -> Tensor | None:
    found = tensors[kind].get(name) if tensors else None
    return found.double() if found is not None else None
