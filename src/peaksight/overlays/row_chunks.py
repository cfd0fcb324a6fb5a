"""Modules that go through their rows in chunks, each checkpointed: activations of one chunk at a time."""

import functools
from collections.abc import Callable, Iterable
from functools import partial
from typing import Any

import torch
from torch import nn
from torch.utils.checkpoint import checkpoint

from peaksight.overlays.independent_rows import why_dependent
from peaksight.overlays.modules import when_called
from peaksight.overlays.patches import Patches

_FLAG = "_in_chunks_by_plan"


def apply(
    patches: Patches, note: Callable[[], None], *, modules: Iterable[str], chunks: int, draws: bool = False
) -> None:
    """Have the modules with these paths go through `chunks` of their rows, in turn, until `patches` is left.

    A module does so whose one argument is a tensor (rows, ...), and of which it is proved when it is first called that
    each row of its result comes of the same row of that argument. Others stay as they are.

    Args:
        draws: Whether it may draw random numbers, such as those of dropout: chunks draw others.
    """

    def mark(module: nn.Module) -> None:
        setattr(module, _FLAG, _Chunked(chunks, draws, note))
        _change_class(patches, type(module))

    when_called(patches, modules, mark)


def _change_class(patches: Patches, cls: Any) -> None:
    forward = cls.forward
    if getattr(forward, "is_in_chunks", False):
        return

    @functools.wraps(forward)
    def called(module: Any, *args: Any, **kwargs: Any) -> Any:
        how = vars(module).get(_FLAG)
        is_known = len(args) == 1 and not kwargs and isinstance(args[0], torch.Tensor) and args[0].dim() > 1
        if how is None or not is_known or not torch.is_grad_enabled():
            return forward(module, *args, **kwargs)
        return how(partial(forward, module), args[0])

    called.is_in_chunks = True  # type: ignore[attr-defined]
    patches.set(cls, "forward", called)


class _Chunked:
    """How one module is called; `is_proved` is None until it first is."""

    def __init__(self, chunks: int, draws: bool, note: Callable[[], None]) -> None:
        self._chunks, self._draws, self._note = chunks, draws, note
        self._is_proved: bool | None = None

    def __call__(self, forward: Callable[[torch.Tensor], Any], rows: torch.Tensor) -> Any:
        if self._is_proved is None:
            self._is_proved = not why_dependent(forward, rows, may_draw=self._draws)
        if not self._is_proved or len(rows) < 2:
            return forward(rows)
        self._note()
        return torch.cat([checkpoint(forward, part, use_reentrant=False) for part in rows.chunk(self._chunks)])
