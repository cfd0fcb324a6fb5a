"""While PyTorch's compiler works, torch is as it would find it on the card: the run's observers are away."""

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import torch
from torch import nn

from peaksight.overlays.patches import Patches
from peaksight.virtual_gpu.compiled import fakes
from peaksight.virtual_gpu.kernels.torch_private import FlexAttentionHOP
from peaksight.virtual_gpu.torch_private import (
    FakeTensor,
    checkpointing,
    function_mode_stack,
    function_modes,
    modes_off,
    subclasses,
)

# What Dynamo reads or has tables of, and must see as PyTorch made it.
_OWNERS: tuple[Any, ...] = (
    nn.Module,
    nn.Parameter,
    torch,
    subclasses,
    torch.utils,
    torch.overrides,
    torch.autograd,
    torch.autograd.graph,
    torch.autograd.graph.saved_tensors_hooks,
    torch.autograd.profiler,
    torch.autograd.profiler.record_function,
    torch.cuda.streams,
    torch.UntypedStorage,
    checkpointing,
    checkpointing.CheckpointFunction,
    FlexAttentionHOP,
)
_STREAMS = ("Stream", "Event", "ExternalStream", "StreamContext", "stream", "current_stream", "default_stream")
# Dynamo has handlers by function, which must not be one and the same.
_TWICE_THE_SAME = ("_exchange_device", "_maybe_exchange_device")


class Tracing:
    """Tells when the compiler works."""

    def __init__(self, patches: Patches, requests: Any) -> None:
        """`patches` are those of the run, `requests` its function mode."""
        self._patches, self._requests = patches, requests
        self._stack: list[Any] = []
        self._is_under_way = False

    @contextmanager
    def under_way(self) -> Iterator[None]:
        """The compiler works: without the run's modes, and without its observers."""
        if self._is_under_way:
            yield
            return
        self._stack, self._is_under_way = function_mode_stack(), True
        others = [mode for mode in self._stack if mode is not self._requests]
        try:
            with modes_off(), function_modes(others), self._patches.suspended(_is_traced), Patches() as patches:
                fakes.install(patches)
                for name in _TWICE_THE_SAME:
                    patches.set(torch.cuda, name, _alone(getattr(torch.cuda, name)))
                yield
        finally:
            self._is_under_way = False

    @contextmanager
    def imports(self) -> Iterator[None]:
        """The compiler's packages are imported, which make tables of functions."""
        with modes_off(), function_modes([]), self._patches.suspended(_is_traced):
            yield

    def away(self) -> set[int]:
        """The ids of what the tracing sees in the place of the run's observers, and of its code."""
        originals = self._patches.originals(_is_traced)
        return {id(each) for original in originals for each in (original, getattr(original, "__code__", original))}

    @contextmanager
    def with_modes_of_run(self) -> Iterator[list[Any]]:
        """The function modes are those among which the compiled code will run."""
        with function_modes(self._stack):
            yield self._stack


def is_guarded(owner: Any, name: str) -> bool:
    """Whether compiled code is guarded by it, so that it has to stay as it was traced: a class of configurations."""
    return isinstance(owner, type) and name in ("__getattribute__", "__setattr__")


def _is_traced(owner: Any, name: str) -> bool:
    if owner is torch.cuda:
        return name in _STREAMS
    return any(owner is each for each in _OWNERS) or (owner is FakeTensor and name == "__new__")


def _alone(function: Any) -> Any:
    return lambda device: function(device)
