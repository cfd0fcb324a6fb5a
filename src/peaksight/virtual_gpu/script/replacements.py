"""What stands for which function while a scratch is in force, wherever a module keeps it."""

import builtins
import io
import os
import sys
from collections.abc import Callable, Iterator
from types import ModuleType
from typing import Any

from peaksight.virtual_gpu.patches import Patches
from peaksight.virtual_gpu.script.commands import SystemCommand
from peaksight.virtual_gpu.script.directory_functions import ListDirectory, ScanDirectory
from peaksight.virtual_gpu.script.name_functions import (
    Link,
    Removal,
    Rename,
    SymbolicLink,
    check_empty_directory,
    check_file,
)
from peaksight.virtual_gpu.script.open_functions import ConnectDatabase, OpenCode, OpenDescriptor, OpenFile
from peaksight.virtual_gpu.script.overlay import Overlay
from peaksight.virtual_gpu.script.path_functions import PathFunction, Redirected, WorkingDirectory

_READ = ("stat", "access", "statvfs", "pathconf", "getxattr", "listxattr", "chdir")
_CHANGE = ("chmod", "chown", "utime", "truncate", "setxattr", "removexattr", "chflags")
_MAKE = ("mkdir", "mkfifo", "mknod")
# The import system works on the real files, see `imports`.
_LEFT_ALONE = ("posix", "_io", "_frozen_importlib_external")


def install(patches: Patches) -> None:
    """Put the replacements wherever a loaded module has the originals, also by `from os import remove`."""
    for module, name, value in list(_globals()):
        replacement = REPLACEMENTS.get(id(value))
        if replacement is not None:
            patches.set(module, name, replacement)
    for support in ("supports_dir_fd", "supports_fd", "supports_follow_symlinks", "supports_effective_ids"):
        functions = getattr(os, support)
        patches.set(os, support, functions | {REPLACEMENTS.get(id(function), function) for function in functions})


def _globals() -> Iterator[tuple[ModuleType, str, Any]]:
    for name, module in list(sys.modules.items()):
        if isinstance(module, ModuleType) and name not in _LEFT_ALONE and not name.startswith(__package__):
            yield from ((module, key, value) for key, value in list(vars(module).items()))


def _replacements() -> Iterator[Redirected]:
    for names, locate in ((_READ, Overlay.backing), (_CHANGE, Overlay.writable), (_MAKE, Overlay.place)):
        yield from (PathFunction(real, locate, follows=names is not _MAKE) for real in _from_os(*names))
    yield from (PathFunction(real, Overlay.backing, follows=False) for real in _from_os("lstat", "readlink"))
    yield from (PathFunction(real, Overlay.writable, follows=False) for real in _from_os("lchown", "lchflags"))
    yield Removal(os.unlink, check_file)
    yield Removal(os.remove, check_file)
    yield Removal(os.rmdir, check_empty_directory)
    yield from (Rename(os.rename), Rename(os.replace), Link(os.link), SymbolicLink(os.symlink))
    yield from (ListDirectory(os.listdir), ScanDirectory(os.scandir))
    yield from (WorkingDirectory(os.getcwd), WorkingDirectory(os.getcwdb))
    yield (open_descriptor := OpenDescriptor(os.open))
    yield OpenFile(builtins.open, open_descriptor)
    yield SystemCommand(os.system)
    yield OpenCode(io.open_code)
    yield from (ConnectDatabase(real) for real in _database_connectors())


def _from_os(*names: str) -> list[Callable[..., Any]]:
    return [getattr(os, name) for name in names if hasattr(os, name)]


def _database_connectors() -> list[Callable[..., Any]]:
    try:
        import sqlite3
    except ImportError:
        return []
    return [sqlite3.connect]


REPLACEMENTS = {id(replacement.real): replacement for replacement in _replacements()}
