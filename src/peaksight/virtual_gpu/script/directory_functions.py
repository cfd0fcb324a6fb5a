"""Listing a merged directory: `os.listdir` and `os.scandir`."""

import os
import stat
from collections.abc import Iterator
from typing import Any

from peaksight.virtual_gpu.script.overlay import Overlay
from peaksight.virtual_gpu.script.path_functions import Redirected, logical_path, path_of_descriptor
from peaksight.virtual_gpu.script.session import current_for_reading, redirecting


class DirectoryEntry:
    """An `os.DirEntry` of the merged view around the real one, which may be in upper."""

    def __init__(self, entry: os.DirEntry[str], directory: Any) -> None:
        """Name the entry as `os.scandir(directory)` does."""
        self._entry = entry
        self.name = os.fsencode(entry.name) if isinstance(directory, bytes) else entry.name
        self.path = self.name if isinstance(directory, int) else os.path.join(directory, self.name)

    def is_dir(self, *, follow_symlinks: bool = True) -> bool:
        """Whether it is a directory."""
        if follow_symlinks and self._entry.is_symlink():
            return stat.S_ISDIR(self._target_mode())
        return self._entry.is_dir(follow_symlinks=False)

    def is_file(self, *, follow_symlinks: bool = True) -> bool:
        """Whether it is a regular file."""
        if follow_symlinks and self._entry.is_symlink():
            return stat.S_ISREG(self._target_mode())
        return self._entry.is_file(follow_symlinks=False)

    def is_symlink(self) -> bool:
        """Whether it is a symbolic link."""
        return self._entry.is_symlink()

    def is_junction(self) -> bool:
        """Whether it is a Windows junction."""
        return False

    def stat(self, *, follow_symlinks: bool = True) -> os.stat_result:
        """As `os.stat` of the path."""
        if follow_symlinks and self._entry.is_symlink():
            return os.stat(self.path)
        return self._entry.stat(follow_symlinks=False)

    def inode(self) -> int:
        """The inode number of the real file."""
        return self._entry.inode()

    def _target_mode(self) -> int:
        try:
            return os.stat(self.path).st_mode
        except FileNotFoundError:
            return 0

    def __fspath__(self) -> str | bytes:
        """The path."""
        return self.path

    def __repr__(self) -> str:
        """As that of `os.DirEntry`."""
        return f"<DirEntry {self.name!r}>"


class Entries(Iterator[DirectoryEntry]):
    """What `os.scandir` returns: an iterator that can be closed."""

    def __init__(self, entries: list[DirectoryEntry]) -> None:
        """Iterate over `entries`."""
        self._entries = iter(entries)

    def __next__(self) -> DirectoryEntry:
        """The next entry."""
        return next(self._entries)

    def __enter__(self) -> "Entries":
        """The iterator itself."""
        return self

    def __exit__(self, *exc_info: object) -> None:
        """Close it."""
        self.close()

    def close(self) -> None:
        """End the iteration."""
        self._entries = iter(())


class ScanDirectory(Redirected):
    """`os.scandir` on the merged view."""

    def __call__(self, path: Any = ".") -> Any:
        """Iterate over the entries of the merged directory."""
        overlay = current_for_reading()
        if overlay is None:
            return self.real(path)
        directory = "." if path is None else path if isinstance(path, int) else os.fspath(path)
        return Entries([DirectoryEntry(entry, directory) for entry in _scan(overlay, directory)])


class ListDirectory(Redirected):
    """`os.listdir` on the merged view."""

    def __call__(self, path: Any = None) -> list[Any]:
        """The names in the merged directory."""
        overlay = current_for_reading()
        if overlay is None:
            return self.real(path)
        names = [entry.name for entry in _scan(overlay, "." if path is None else path)]
        return [os.fsencode(name) for name in names] if isinstance(path, bytes) else names


def _scan(overlay: Overlay, path: Any) -> list[os.DirEntry[str]]:
    with redirecting(path):
        is_descriptor = isinstance(path, int)
        return overlay.scan(path_of_descriptor(overlay, path) if is_descriptor else logical_path(overlay, path))
