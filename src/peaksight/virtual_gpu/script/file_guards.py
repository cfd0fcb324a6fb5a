"""Guards of the audit net that keep every file outside the scratch directory as it is."""

import errno
import os
import re
import stat
from typing import Any

from peaksight.virtual_gpu.script.audit import Guard
from peaksight.virtual_gpu.script.open_functions import WRITING, opening
from peaksight.virtual_gpu.script.overlay import Overlay
from peaksight.virtual_gpu.script.resolver import is_special
from peaksight.virtual_gpu.script.session import trusted

_REFUSAL = (
    "A simulated run does not write there, and this call could not be redirected; "
    "use open() or pathlib, or leave the write out when the run is simulated"
)
_STANDARD_OUTPUT = re.compile(r"/dev/std(out|err)|/(dev|proc/self)/fd/[12]")


def _guard_open(overlay: Overlay, path: Any, mode: str | None, flags: int) -> None:
    if flags & WRITING and not isinstance(path, int) and path is not opening.path and not _is_output(path):
        _demand_scratch(overlay, path)


def _guard_path(overlay: Overlay, path: Any, *args: Any) -> None:
    _demand_scratch(overlay, path, args[-1] if args else -1)


def _guard_first(overlay: Overlay, path: Any, *args: Any) -> None:
    _demand_scratch(overlay, path)


def _guard_names(overlay: Overlay, src: Any, dst: Any, src_dir_fd: int = -1, dst_dir_fd: int = -1) -> None:
    _demand_scratch(overlay, src, src_dir_fd, follow=False)
    _demand_scratch(overlay, dst, dst_dir_fd, follow=False)


def _guard_new_link(overlay: Overlay, src: Any, dst: Any, dir_fd: int) -> None:
    _demand_scratch(overlay, dst, dir_fd, follow=False)


def _guard_removal(overlay: Overlay, path: Any, dir_fd: int) -> None:
    _demand_scratch(overlay, path, dir_fd, follow=False)


def _guard_database(overlay: Overlay, database: Any) -> None:
    if os.fspath(database) not in ("", ":memory:", b"", b":memory:"):
        _demand_scratch(overlay, os.fsdecode(database).removeprefix("file:").partition("?")[0])


FILE_GUARDS: dict[str, Guard] = {
    "open": _guard_open,
    "os.chmod": _guard_path,
    "os.chown": _guard_path,
    "os.utime": _guard_path,
    "os.mkdir": _guard_path,
    "os.truncate": _guard_first,
    "os.setxattr": _guard_first,
    "os.removexattr": _guard_first,
    "os.chflags": _guard_first,
    "os.remove": _guard_removal,
    "os.rmdir": _guard_removal,
    "os.rename": _guard_names,
    "os.link": _guard_names,
    "os.symlink": _guard_new_link,
    "sqlite3.connect": _guard_database,
}


def _demand_scratch(overlay: Overlay, path: Any, dir_fd: int = -1, *, follow: bool = True) -> None:
    with trusted:
        name = _absolute(path, dir_fd)
        real = os.path.realpath(name) if follow else os.path.realpath(os.path.dirname(name))
        if not overlay.owns(real) and not (isinstance(path, int) and _is_memory(name)):
            raise PermissionError(errno.EACCES, _REFUSAL, name)


def _absolute(path: Any, dir_fd: int) -> str:
    if isinstance(path, int):
        return os.readlink(f"/proc/self/fd/{path}")
    base = os.getcwd() if dir_fd == -1 else os.readlink(f"/proc/self/fd/{dir_fd}")
    return os.path.join(base, os.fsdecode(path))


def _is_memory(name: str) -> bool:
    """Whether an open file called `name` in /proc is no file with a name on a disk."""
    return not name.startswith("/") or name.endswith(" (deleted)") or name.startswith("/dev/shm/")


def _is_output(path: Any) -> bool:
    """Whether to open `path` for writing harms no file: standard output, a device, a pipe, the process's own."""
    with trusted:
        try:
            mode = os.stat(path).st_mode
        except OSError:
            return False
        if stat.S_ISREG(mode):
            return bool(_STANDARD_OUTPUT.fullmatch(os.fsdecode(path))) or is_special(os.path.realpath(path))
        return stat.S_ISFIFO(mode) or stat.S_ISSOCK(mode) or stat.S_ISCHR(mode)
