"""Opening files in the merged view: `open`, `os.open`, `io.open_code`, `sqlite3.connect`."""

import os
import threading
from collections.abc import Callable
from typing import Any

from peaksight.virtual_gpu.script.overlay import Overlay
from peaksight.virtual_gpu.script.path_functions import Redirected, logical_path
from peaksight.virtual_gpu.script.session import current, current_for_reading, redirecting

WRITING = os.O_WRONLY | os.O_RDWR | os.O_CREAT | os.O_TRUNC | os.O_APPEND


class OpenDescriptor(Redirected):
    """`os.open` on the merged view."""

    def __call__(self, path: Any, flags: int, mode: int = 0o777, *, dir_fd: int | None = None) -> int:
        """Open what the run sees, or the copy it writes to."""
        overlay = current() if flags & WRITING else current_for_reading()
        if overlay is None:
            return self.real(path, flags, mode, dir_fd=dir_fd)
        with redirecting(path):
            makes_anew = flags & os.O_CREAT and flags & os.O_EXCL
            follow = not (flags & os.O_NOFOLLOW or makes_anew)
            logical = logical_path(overlay, path, dir_fd, follow=follow)
            slash = "/" if os.fsdecode(path).endswith("/") else ""
            return self.real(_locate(overlay, logical, flags) + slash, flags, mode)


class Opening(threading.local):
    """The path whose `open` is under way in this thread; its opener takes it to the right file."""

    path: Any = None


opening = Opening()


class OpenFile(Redirected):
    """The builtin `open`: as ever, but with an opener on the merged view. So `name` stays what the script gave."""

    def __init__(self, real: Callable[..., Any], open_descriptor: Callable[..., int]) -> None:
        """Stand for `real`, opening by `open_descriptor`."""
        super().__init__(real)
        self._open_descriptor = open_descriptor

    def __call__(
        self,
        file: Any,
        mode: str = "r",
        buffering: int = -1,
        encoding: str | None = None,
        errors: str | None = None,
        newline: str | None = None,
        closefd: bool = True,
        opener: Callable[[Any, int], int] | None = None,
    ) -> Any:
        """Open `file`; see the builtin."""
        if current() is None or isinstance(file, int):
            return self.real(file, mode, buffering, encoding, errors, newline, closefd, opener)
        opening.path = path = os.fspath(file)
        opener = opener or self._open_default
        try:
            return self.real(path, mode, buffering, encoding, errors, newline, closefd, _announced(opener))
        finally:
            opening.path = None

    def _open_default(self, path: Any, flags: int) -> int:
        return self._open_descriptor(path, flags, 0o666)


class OpenCode(Redirected):
    """`io.open_code`, by which imports read source files."""

    def __call__(self, path: str) -> Any:
        """Open what the run sees at `path`."""
        overlay = current_for_reading()
        if overlay is None:
            return self.real(path)
        with redirecting(path):
            return self.real(overlay.backing(logical_path(overlay, path)))


class ConnectDatabase(Redirected):
    """`sqlite3.connect`: the database is always opened for writing, hence copied up."""

    def __call__(self, database: Any, *args: Any, **options: Any) -> Any:
        """Connect to the copy in upper."""
        overlay = current()
        if overlay is None or os.fspath(database) in ("", ":memory:", b"", b":memory:"):
            return self.real(database, *args, **options)
        with redirecting(database):
            return self.real(_locate_database(overlay, os.fsdecode(database)), *args, **options)


def _announced(opener: Callable[[Any, int], int]) -> Callable[[Any, int], int]:
    def open_announced(path: Any, flags: int) -> int:
        opening.path = None
        return opener(path, flags)

    return open_announced


def _locate(overlay: Overlay, path: str, flags: int) -> str:
    if not flags & WRITING:
        return overlay.backing(path)
    if flags & os.O_CREAT and flags & os.O_EXCL:
        return overlay.place(path)
    return overlay.writable(path, contents=not flags & os.O_TRUNC)


def _locate_database(overlay: Overlay, database: str) -> str:
    if not database.startswith("file:"):
        return overlay.writable(logical_path(overlay, database))
    path, mark, query = database.removeprefix("file:").partition("?")
    if path == ":memory:" or "mode=memory" in query:
        return database
    return "file:" + overlay.writable(logical_path(overlay, path)) + mark + query
