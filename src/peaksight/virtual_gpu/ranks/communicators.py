"""What NCCL takes beside PyTorch's allocator: how much at most, as measured on two cards."""

from collections.abc import Callable, Sequence
from typing import Any

from peaksight.units import MIB
from peaksight.virtual_gpu.tensors.values import is_computing

# benchmarks/ranks/communicators-2.json: two H200, torch 2.11+cu130, 2026-11-28. With the first come NCCL's kernels.
_FIRST_BYTES = 840 * MIB
_FURTHER_BYTES = 484 * MIB
_ALL_TO_ALL_BYTES = 442 * MIB


class Communicators:
    """Counts the communicators of a run: one for each group, and more buffers with the first exchange between all."""

    def __init__(self, note: Callable[..., None], called: Callable[[Any, str, Any], None]) -> None:
        """None yet; `note` is `Approximations.note`, and `called` is told of every collective in turn."""
        self._note = note
        self._called = called
        self._num_groups = 0
        self._exchange_bytes = 0

    def made(self, num_groups: int) -> None:
        """There is a further group of NCCL; with it there are as many."""
        self._num_groups = num_groups
        self._tell()

    def called(self, group: Any, kind: str, tensors: Sequence[Any]) -> None:
        """The collective `kind` of `group` was called."""
        if is_computing():
            return
        if kind == "all_to_all" and self._num_groups and not self._exchange_bytes:
            self._exchange_bytes = _ALL_TO_ALL_BYTES
            self._tell()
        self._called(group, kind, tensors)

    def _tell(self) -> None:
        groups_bytes = _FIRST_BYTES + (self._num_groups - 1) * _FURTHER_BYTES
        self._note("communicator", at_most_bytes=groups_bytes + self._exchange_bytes)
