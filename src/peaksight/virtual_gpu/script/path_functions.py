"""The functions of `os` on one path, on the merged view."""

import errno
import os
from collections.abc import Callable
from typing import Any

from peaksight.virtual_gpu.script.overlay import Overlay
from peaksight.virtual_gpu.script.resolver import os_error
from peaksight.virtual_gpu.script.session import current, current_for_reading, redirecting


def logical_path(overlay: Overlay, path: Any, dir_fd: int | None = None, *, follow: bool = True) -> str:
    """The canonical form of `path` as a script names it: relative, in bytes, or below an open directory."""
    text = os.fsdecode(path)
    if not text:
        raise os_error(errno.ENOENT)
    base = working_directory(overlay) if dir_fd is None else path_of_descriptor(overlay, dir_fd)
    logical = overlay.resolve(os.path.join(base, text), follow=follow)
    if text.endswith("/") and overlay.exists(logical) and not os.path.isdir(overlay.backing(logical)):
        raise os_error(errno.ENOTDIR)
    return logical


def working_directory(overlay: Overlay) -> str:
    """The working directory as the run sees it: a new one is really in upper."""
    return os.getcwd().removeprefix(overlay.upper) or "/"


def path_of_descriptor(overlay: Overlay, descriptor: int) -> str:
    """The path that an open directory has in the merged view."""
    return os.readlink(f"/proc/self/fd/{descriptor}").removeprefix(overlay.upper) or "/"


class Redirected:
    """A function to put in the place of `real`.

    Like a builtin, and unlike a Python function, it does not become a method where a class keeps it. It stays
    in modules that took it by `from os import ...`, and does what `real` does when no overlay is in force.
    """

    def __init__(self, real: Callable[..., Any]) -> None:
        """Stand for `real`."""
        self.real = real
        self.__name__ = real.__name__
        self.__doc__ = real.__doc__

    def __repr__(self) -> str:
        """Like a builtin's."""
        return f"<redirected function {self.__name__}>"


class PathFunction(Redirected):
    """A function on one path; `locate` finds the real path for the canonical one."""

    def __init__(
        self, real: Callable[..., Any], locate: Callable[[Overlay, str], str], *, follows: bool = True
    ) -> None:
        """Stand for `real`, which follows a link in the last component or not."""
        super().__init__(real)
        self._locate = locate
        self._follows = follows
        self._overlay = current_for_reading if locate is Overlay.backing else current

    def __call__(self, path: Any, *args: Any, dir_fd: int | None = None, **options: Any) -> Any:
        """Call `real` with the path that holds what the run sees."""
        overlay = self._overlay()
        if overlay is None or not isinstance(path, str | bytes | os.PathLike):
            return self.real(path, *args, **options, **({} if dir_fd is None else {"dir_fd": dir_fd}))
        with redirecting(path):
            follow = self._follows and options.get("follow_symlinks", True)
            located = self._locate(overlay, logical_path(overlay, path, dir_fd, follow=follow))
            return self.real(os.fsencode(located) if isinstance(path, bytes) else located, *args, **options)


class WorkingDirectory(Redirected):
    """`os.getcwd` or `os.getcwdb`."""

    def __call__(self) -> str | bytes:
        """The working directory as the run sees it."""
        overlay = current()
        real = self.real()
        if overlay is None or isinstance(real, bytes):
            return real if overlay is None else os.fsencode(os.getcwd())
        return real.removeprefix(overlay.upper) or "/"
