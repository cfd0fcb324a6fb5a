"""What stands for which function while a scratch is in force, wherever a module keeps it."""

import _posixsubprocess
import builtins
import gc
import io
import os
import sys
from collections.abc import Callable, Iterator
from typing import Any

from peaksight.overlays.patches import Patches
from peaksight.virtual_gpu.script.commands import StartProcess, SystemCommand
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

_READ = ("stat", "access", "statvfs", "pathconf", "getxattr", "listxattr")
_CHANGE = ("chmod", "chown", "utime", "setxattr", "removexattr", "chflags")
_MAKE = ("mkdir", "mkfifo", "mknod")
# The import system works on the real files, see `imports`.
_LEFT_ALONE = {"posix", "_io", "_frozen_importlib_external"}


def install(patches: Patches) -> None:
    """Put the replacements wherever a dictionary has the originals.

    Not only `os` and `builtins` do: so does each module with a `from os import remove`, and tables of functions.
    """
    left_alone = {id(namespace) for namespace in _left_alone()}
    for namespace in gc.get_referrers(*(replacement.real for replacement in REPLACEMENTS.values())):
        # The dictionary of a class, which has a `__module__`, may not be changed behind the interpreter's back.
        if type(namespace) is dict and id(namespace) not in left_alone and "__module__" not in namespace:
            _replace_in(namespace, patches)
    for support in ("supports_dir_fd", "supports_fd", "supports_follow_symlinks", "supports_effective_ids"):
        functions = getattr(os, support)
        patches.set(os, support, functions | {REPLACEMENTS.get(id(function), function) for function in functions})


def _left_alone() -> Iterator[dict[str, Any]]:
    for name, module in sys.modules.items():
        if name in _LEFT_ALONE or name.startswith(f"{__package__}."):
            yield vars(module)
    yield from map(vars, REPLACEMENTS.values())


def _replace_in(namespace: dict[Any, Any], patches: Patches) -> None:
    for name, value in list(namespace.items()):
        if id(value) in REPLACEMENTS:
            namespace[name] = REPLACEMENTS[id(value)]
            patches.callback(namespace.__setitem__, name, value)


def _replacements() -> Iterator[Redirected]:
    for names, locate in ((_READ, Overlay.backing), (_CHANGE, Overlay.copy_up), (_MAKE, Overlay.place)):
        yield from (PathFunction(real, locate, follows=names is not _MAKE) for real in _from_os(*names))
    yield from (PathFunction(real, Overlay.backing, follows=False) for real in _from_os("lstat", "readlink"))
    yield from (PathFunction(real, Overlay.copy_up, follows=False) for real in _from_os("lchown", "lchflags"))
    yield PathFunction(os.truncate, Overlay.writable)
    yield PathFunction(os.chdir, Overlay.directory)
    yield Removal(os.unlink, check_file)
    yield Removal(os.remove, check_file)
    yield Removal(os.rmdir, check_empty_directory)
    yield from (Rename(os.rename), Rename(os.replace), Link(os.link), SymbolicLink(os.symlink))
    yield from (ListDirectory(os.listdir), ScanDirectory(os.scandir))
    yield from (WorkingDirectory(os.getcwd), WorkingDirectory(os.getcwdb))
    yield (open_descriptor := OpenDescriptor(os.open))
    yield OpenFile(builtins.open, open_descriptor)
    yield from (SystemCommand(os.system), StartProcess(_posixsubprocess.fork_exec))
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
