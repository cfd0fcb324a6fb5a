"""Bytecode: of installed packages Python keeps it as ever, so that the next run need not compile them again."""

from importlib.machinery import SourceFileLoader
from typing import Any

from peaksight.overlays.patches import Patches
from peaksight.virtual_gpu.script.audit import lifted
from peaksight.virtual_gpu.script.session import trusted
from peaksight.virtual_gpu.source_lines import installed_name


def keep_bytecode(patches: Patches) -> None:
    """Let Python write that of installed packages beside them, and none beside the person's own modules."""

    def keep(loader: SourceFileLoader, source_path: str, bytecode_path: str, data: Any) -> None:
        if installed_name(source_path) is not None:
            with trusted, lifted:
                cache(loader, source_path, bytecode_path, data)

    cache = patches.set(SourceFileLoader, "_cache_bytecode", keep)
