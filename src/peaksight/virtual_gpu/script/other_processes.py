"""Processes that the script starts: the virtual card is in its own process only, and the others are refused it."""

import multiprocessing
import os
from collections.abc import Callable, Mapping
from types import ModuleType
from typing import Any, NoReturn

from peaksight.overlays.late_imports import change_modules
from peaksight.overlays.patches import Patches
from peaksight.virtual_gpu.script.journal import note
from peaksight.virtual_gpu.script.session import active

_in_child: list[Callable[[], None]] = []


def _run_in_child() -> None:
    for function in _in_child:
        function()


os.register_at_fork(after_in_child=_run_in_child)


def call_in_forked(patches: Patches, function: Callable[[], None]) -> None:
    """Call `function` first in every process that is forked until `patches` is left."""
    _in_child.append(function)
    patches.callback(_in_child.remove, function)


def refuse_card() -> NoReturn:
    """This process, which the script started, wants the card: leave word of that, and fail."""
    overlay, process = active(), multiprocessing.current_process()
    name = "a fork" if process.name == "MainProcess" else process.name
    if overlay is not None:
        note(overlay.root, name, slug="other-process")
    raise RuntimeError(f"only the script's own process is simulated, not {name}")


def refuse_used_card() -> NoReturn:
    """As `torch.cuda._lazy_init` in a process that was forked after the card was used."""
    raise RuntimeError(
        "Cannot re-initialize CUDA in forked subprocess. To use CUDA with multiprocessing, you must use the 'spawn' "
        "start method"
    )


def refuse_card_to_this_process(patches: Patches) -> None:
    """As `refuse_card` where there is no virtual card: torch says that there is one, and using it fails."""
    changes: Mapping[str, Any] = {
        "is_available": lambda: True,
        "device_count": lambda: 1,
        "_lazy_init": refuse_card,
    }

    def change(module: ModuleType) -> None:
        for name, answer in changes.items():
            patches.set(module, name, answer)

    change_modules(patches, {"torch.cuda": change})
