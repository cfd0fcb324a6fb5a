"""Importing modules that the script itself has written, which the import system cannot see."""

import os
import sys
from collections.abc import Sequence
from contextlib import suppress
from importlib.machinery import SOURCE_SUFFIXES, FileFinder, ModuleSpec, SourceFileLoader
from types import ModuleType

from peaksight.virtual_gpu.script.path_functions import logical_path
from peaksight.virtual_gpu.script.session import current, trusted


class WrittenModuleFinder:
    """The last resort on `sys.meta_path`: looks for source files in upper."""

    @staticmethod
    def find_spec(name: str, path: Sequence[str] | None = None, target: ModuleType | None = None) -> ModuleSpec | None:
        """Find `name` among the files that the run has written."""
        overlay = current()
        if overlay is None:
            return None
        for directory in sys.path if path is None else path:
            with trusted, suppress(OSError):
                upper = overlay.upper_path(logical_path(overlay, directory or "."))
                spec = FileFinder(upper, (SourceFileLoader, SOURCE_SUFFIXES)).find_spec(name)
                if spec is not None and os.path.isdir(upper):
                    return spec
        return None
