"""Putting an overlay in force in a process: the run's own, and the workers that it spawns."""

import multiprocessing.process
import multiprocessing.spawn
import multiprocessing.util
import os
import sys
import tempfile
from typing import Any

from peaksight.overlays.patches import Patches
from peaksight.virtual_gpu.script import audit, replacements, session
from peaksight.virtual_gpu.script.bytecode import keep_bytecode
from peaksight.virtual_gpu.script.commands import COMMAND_GUARDS
from peaksight.virtual_gpu.script.environment import environment
from peaksight.virtual_gpu.script.file_guards import FILE_GUARDS
from peaksight.virtual_gpu.script.imports import WrittenModuleFinder
from peaksight.virtual_gpu.script.native import redirect_native
from peaksight.virtual_gpu.script.network import NETWORK_GUARDS
from peaksight.virtual_gpu.script.other_processes import refuse_card_to_this_process
from peaksight.virtual_gpu.script.overlay import Overlay
from peaksight.virtual_gpu.script.process_limit import PROCESS_GUARDS, count_this_process


def confine(patches: Patches, overlay: Overlay) -> None:
    """Put `overlay` in force in this process, and in those forked or spawned from it, until `patches` are undone."""
    os.makedirs(overlay.temporary, exist_ok=True)
    audit.install(FILE_GUARDS | NETWORK_GUARDS | COMMAND_GUARDS | PROCESS_GUARDS)
    replacements.install(patches)
    redirect_native(patches)
    patches.enter_context(environment(overlay.temporary))
    patches.set(tempfile, "tempdir", overlay.temporary)
    keep_bytecode(patches)
    sys.meta_path.append(WrittenModuleFinder)
    patches.callback(sys.meta_path.remove, WrittenModuleFinder)
    patches.callback(_remove_temporary_directory, overlay)
    _confine_spawned(patches, overlay)
    patches.callback(session.activate, None)
    session.activate(overlay)
    count_this_process(overlay)


class _Admission:
    """Part of the data sent to a spawned process: confines it when unpickled, before the script is imported there."""

    def __init__(self, root: str) -> None:
        self._root = root

    def __reduce__(self) -> tuple[Any, ...]:
        return _join, (self._root,)


def _join(root: str) -> None:
    patches = Patches()
    confine(patches, Overlay(root))
    refuse_card_to_this_process(patches)


def _confine_spawned(patches: Patches, overlay: Overlay) -> None:
    def get_preparation_data(name: str) -> dict[str, Any]:
        data = prepare(name)
        if name == "ignore":
            # The fork server, which gets plain text: it may not import the script, its children will.
            return {key: value for key, value in data.items() if key not in ("main_path", "init_main_from_path")}
        return data | {"peaksight": _Admission(overlay.root)}

    prepare = patches.set(multiprocessing.spawn, "get_preparation_data", get_preparation_data)


def _remove_temporary_directory(overlay: Overlay) -> None:
    """Have multiprocessing remove its directory while it exists, not at the end of the process."""
    util: Any = multiprocessing.util
    process: Any = multiprocessing.process.current_process()
    if overlay.owns(process._config.get("tempdir") or ""):
        for finalizer in list(util._finalizer_registry.values()):
            if finalizer._callback is util._remove_temp_dir:
                finalizer()
