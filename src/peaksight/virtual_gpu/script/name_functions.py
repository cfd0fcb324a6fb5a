"""The functions of `os` that give names and take them away: rename, link, symlink, remove."""

import errno
import os
import stat
from collections.abc import Callable
from typing import Any

from peaksight.virtual_gpu.script.overlay import Overlay
from peaksight.virtual_gpu.script.path_functions import Redirected, logical_path
from peaksight.virtual_gpu.script.resolver import os_error
from peaksight.virtual_gpu.script.session import current, redirecting


class Removal(Redirected):
    """`os.unlink`, `os.remove` or `os.rmdir`: what the person has is hidden, what the run made is deleted."""

    def __init__(self, real: Callable[..., Any], check: Callable[[Overlay, str], None]) -> None:
        """Stand for `real`; `check` raises as the kernel does for the wrong kind of file."""
        super().__init__(real)
        self._check = check

    def __call__(self, path: Any, *, dir_fd: int | None = None) -> None:
        """Take `path` out of the merged view."""
        overlay = current()
        if overlay is None:
            return self.real(path, dir_fd=dir_fd)
        with redirecting(path):
            logical = logical_path(overlay, path, dir_fd, follow=False)
            self._check(overlay, logical)
            overlay.remove(logical)


class Rename(Redirected):
    """`os.rename` or `os.replace`, which are the same on POSIX."""

    def __call__(self, src: Any, dst: Any, *, src_dir_fd: int | None = None, dst_dir_fd: int | None = None) -> None:
        """Copy `src` up, move the copy, hide what the person has under both names."""
        overlay = current()
        if overlay is None:
            return self.real(src, dst, src_dir_fd=src_dir_fd, dst_dir_fd=dst_dir_fd)
        with redirecting(src, dst):
            source = logical_path(overlay, src, src_dir_fd, follow=False)
            target = logical_path(overlay, dst, dst_dir_fd, follow=False)
            _check_rename(overlay, source, target)
            if source != target:
                _rename(overlay, source, target)


class Link(Redirected):
    """`os.link`: both names stand for the copy."""

    def __call__(
        self, src: Any, dst: Any, *, src_dir_fd: int | None = None, dst_dir_fd: int | None = None, **options: Any
    ) -> None:
        """Copy `src` up and link to the copy."""
        overlay = current()
        if overlay is None:
            return self.real(src, dst, src_dir_fd=src_dir_fd, dst_dir_fd=dst_dir_fd, **options)
        with redirecting(src, dst):
            source = logical_path(overlay, src, src_dir_fd, follow=False)
            os.lstat(overlay.backing(source))
            target = overlay.place(logical_path(overlay, dst, dst_dir_fd, follow=False))
            self.real(overlay.copy_up(source), target, **options)
            overlay.links_changed()


class SymbolicLink(Redirected):
    """`os.symlink`: the target is kept as given, it is followed in the merged view."""

    def __call__(self, src: Any, dst: Any, target_is_directory: bool = False, *, dir_fd: int | None = None) -> None:
        """Make the link in upper."""
        overlay = current()
        if overlay is None:
            return self.real(src, dst, target_is_directory, dir_fd=dir_fd)
        with redirecting(src, dst):
            self.real(os.fsdecode(src), overlay.place(logical_path(overlay, dst, dir_fd, follow=False)))
            overlay.links_changed()


def check_file(overlay: Overlay, path: str) -> None:
    """Raise as unlink(2) does unless `path` is there and no directory."""
    if _is_directory(overlay, path):
        raise os_error(errno.EISDIR)


def check_empty_directory(overlay: Overlay, path: str) -> None:
    """Raise as rmdir(2) does unless `path` is an empty directory."""
    if not _is_directory(overlay, path):
        raise os_error(errno.ENOTDIR)
    if overlay.scan(path):
        raise os_error(errno.ENOTEMPTY)


def _is_directory(overlay: Overlay, path: str) -> bool:
    return stat.S_ISDIR(os.lstat(overlay.backing(path)).st_mode)


def _check_rename(overlay: Overlay, source: str, target: str) -> None:
    moves_directory = _is_directory(overlay, source)
    if target.startswith(source + "/"):
        raise os_error(errno.EINVAL)
    if not overlay.exists(target) or source == target:
        return
    if source.startswith(target + "/"):
        raise os_error(errno.ENOTEMPTY)
    if moves_directory:
        check_empty_directory(overlay, target)
    else:
        check_file(overlay, target)


def _rename(overlay: Overlay, source: str, target: str) -> None:
    if overlay.exists(target):
        overlay.remove(target)
    upper = overlay.place(target)
    os.rename(overlay.copy_up_tree(source), upper)
    overlay.hide(source)
    overlay.links_changed()
