"""Processes that the script spawns by torch.multiprocessing: each is watched as a rank of its own."""

import os
from collections.abc import Callable
from dataclasses import dataclass
from functools import wraps
from types import ModuleType
from typing import Any

from peaksight.overlays.late_imports import change_modules
from peaksight.overlays.patches import Patches

_MODULE = "torch.multiprocessing.spawn"
# Those that begin with an interpreter of their own; a forked one writes nothing.
_METHODS = ("spawn", "forkserver")

Wrap = Callable[[Callable[..., Any], int], Callable[..., Any]]


@dataclass(frozen=True, slots=True, kw_only=True)
class Watched:
    """`function` of a spawned process, which gets its number first, under `watch(function, number, args)`.

    It is sent to that process, and so is all that it holds. In a traceback of the process it is one frame.
    """

    function: Callable[..., Any]
    watch: Callable[[Callable[..., Any], int, tuple[Any, ...]], Any]

    def __call__(self, number: int, *args: Any) -> Any:
        """Run it."""
        return self.watch(self.function, number, args)


def follow_spawned(patches: Patches, wrap: Wrap, on_start: Callable[[], None]) -> None:
    """Have `mp.spawn` and `start_processes` run `wrap(function, how many)` in place of each function, after `on_start`.

    Until `patches` is left; processes that were forked from this one spawn unchanged.
    """
    owner = os.getpid()

    def hook(module: ModuleType) -> None:
        start = module.start_processes

        @wraps(start)
        def start_processes(
            fn: Any, args: Any = (), nprocs: int = 1, join: bool = True, daemon: bool = False,
            start_method: str = "spawn", **options: Any,
        ) -> Any:  # fmt: skip
            if start_method in _METHODS and os.getpid() == owner:
                on_start()
                fn = wrap(fn, nprocs)
            return start(fn, args, nprocs, join, daemon, start_method, **options)

        patches.set_wherever_imported("start_processes", start_processes, of=module, also_as="start_processes")

    change_modules(patches, {_MODULE: hook})
