"""Statements of the script's files in other words, from the moment that a file is compiled; no file changes."""

import io
import os
import sys
from collections.abc import Callable
from importlib.machinery import SourceFileLoader
from typing import Any

from peaksight.errors import PlanError
from peaksight.overlays.patches import Patches
from peaksight.records.source_edit import SourceEdit


def apply(patches: Patches, note: Callable[[], None], *, file: str, line: int, text: str, replacement: str) -> None:
    """Compile `file`, below a folder of `sys.path`, with `replacement` in place of `text` until `patches` is left.

    As many lines as before, so that tracebacks and reports name the person's. What was compiled already stays.

    Raises:
        PlanError: it is the script that is running already. When the file is compiled: `text` is not at `line`.
    """
    edit = SourceEdit(file=file, line=line, text=text, replacement=replacement)
    if _is_running(edit):
        raise PlanError(
            f"Can't edit {file}: it is running already. Start it with `python -m peaksight --plan FILE {file}`.",
            slug="plan-edit",
        )
    _Compiled(edit, note).install(patches)


def _is_running(edit: SourceEdit) -> bool:
    main = sys.modules["__main__"]
    return getattr(main, "__spec__", None) is None and _is_file_of(edit, getattr(main, "__file__", None) or "")


def _is_file_of(edit: SourceEdit, path: str) -> bool:
    """Whether `path` is the file that `edit` names, from whichever folder it is imported."""
    if os.path.basename(path) != os.path.basename(edit.file):
        return False
    real = os.path.realpath(path)
    return any(os.path.realpath(os.path.join(folder, edit.file)) == real for folder in sys.path)


class _Compiled:
    """Gives the edited source wherever Python reads a file to compile it, and keeps it from caches of bytecode."""

    def __init__(self, edit: SourceEdit, note: Callable[[], None]) -> None:
        self._edit, self._note = edit, note

    def install(self, patches: Patches) -> None:
        get_data, path_stats, open_code = SourceFileLoader.get_data, SourceFileLoader.path_stats, io.open_code

        def edited_data(loader: SourceFileLoader, path: str) -> bytes:
            return self._edited(path, get_data(loader, path))

        def stats(loader: SourceFileLoader, path: str) -> Any:
            if _is_file_of(self._edit, path):
                raise OSError(f"{path} is compiled anew")
            return path_stats(loader, path)

        def open_edited(path: str) -> Any:
            opened = open_code(path)
            if not _is_file_of(self._edit, path):
                return opened
            with opened:
                return io.BytesIO(self._edited(path, opened.read()))

        patches.set(SourceFileLoader, "get_data", edited_data)
        patches.set(SourceFileLoader, "path_stats", stats)
        patches.set(io, "open_code", open_edited)

    def _edited(self, path: str, source: bytes) -> bytes:
        if not _is_file_of(self._edit, path):
            return source
        self._note()
        return self._edit.made_in(source)
