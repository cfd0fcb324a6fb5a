"""The merged view: the person's files (lower) under what the run has changed (upper), in the way of overlayfs."""

import errno
import os
import shutil
import stat
from collections.abc import Iterator
from contextlib import suppress
from os import lstat
from os import stat as stat_

from peaksight.virtual_gpu.script.resolver import Resolver, is_special, os_error


class Overlay:
    """The files as the run sees them; `root` is the scratch directory.

    A path below `root/upper` stands for the same path from `/`. A regular file below `root/whiteouts` hides the
    lower path and everything under it. All state is on disk: processes made by fork or spawn share it.

    Paths are canonical (see `resolve`), and every method runs in a trusted section.
    """

    def __init__(self, root: str) -> None:
        """Use, and make if need be, the layers below `root`."""
        self.root = root
        self.upper = os.path.join(root, "upper")
        self.whiteouts = os.path.join(root, "whiteouts")
        self.temporary = os.path.join(root, "tmp")
        self.num_changes = 0
        for layer in (self.upper, self.whiteouts):
            if not os.path.isdir(layer):
                os.makedirs(layer)
                os.utime(layer, (0, 0))
        self._resolver = Resolver(self.backing, os.path.join(root, "renames"))

    def close(self) -> None:
        """Let go of the scratch directory, which may then be removed."""
        self._resolver.close()

    @property
    def pristine(self) -> bool:
        """Whether no process has changed anything yet: the layers have the time stamp that they were made with."""
        return stat_(self.upper).st_mtime_ns == 0 and stat_(self.whiteouts).st_mtime_ns == 0

    def owns(self, path: str) -> bool:
        """Whether `path` is in the scratch directory, hence no file of the person's."""
        return path == self.root or path.startswith(self.root + "/")

    def resolve(self, path: str, *, follow: bool = True) -> str:
        """The canonical form of an absolute `path`: links of the merged view followed, the last one if `follow`."""
        return self._resolver.resolve(path, follow=follow)

    def links_changed(self) -> None:
        """To be called, in any process, after a link or a directory has changed its name or gone."""
        self._resolver.forget()

    def backing(self, path: str) -> str:
        """The real path of what the run sees at `path`; one that does not exist if it sees nothing."""
        upper = self.upper_path(path)
        try:
            lstat(upper)
        except FileNotFoundError:
            return upper if self._hidden(path) else path
        except NotADirectoryError:
            pass
        return upper

    def directory(self, path: str) -> str:
        """The real directory to work in at `path`: the person's own where there is one, it outlives the run."""
        return path if self._in_lower(path) else self.backing(path)

    def exists(self, path: str) -> bool:
        """Whether the run sees anything at `path`, be it a broken link."""
        return _lexists(self.backing(path))

    def upper_path(self, path: str) -> str:
        """Where changes to `path` are kept."""
        return path if self.owns(path) or is_special(path) else self.upper + path

    def scan(self, path: str) -> list[os.DirEntry[str]]:
        """The real entries of the merged directory."""
        found: dict[str, os.DirEntry[str]] = {}
        hidden = self._hidden_names(path)
        for layer in self._layers(path):
            with os.scandir(layer) as entries:
                found |= {entry.name: entry for entry in entries if layer != path or entry.name not in hidden}
        return list(found.values())

    def copy_up(self, path: str, *, contents: bool = True) -> str:
        """Make `path` exist in upper, a directory without its children, a file with its `contents` or empty."""
        upper = self.upper_path(path)
        if _lexists(upper) or not self._in_lower(path):
            return upper
        self.copy_up(os.path.dirname(path))
        self.num_changes += 1
        _copy_node(path, upper, contents=contents)
        return upper

    def copy_up_tree(self, path: str) -> str:
        """Make `path` and all that the run sees below it exist in upper."""
        upper = self.copy_up(path)
        if os.path.isdir(upper) and not os.path.islink(upper):
            for entry in self.scan(path):
                self.copy_up_tree(os.path.join(path, entry.name))
        return upper

    def place(self, path: str) -> str:
        """Where to make a new `path`; refused as the kernel does when it exists or its parent is no directory."""
        if self.exists(path):
            raise os_error(errno.EEXIST)
        parent = os.path.dirname(path)
        os.stat(self.backing(parent) + "/")
        self._demand_access(parent, os.W_OK | os.X_OK)
        self.copy_up(parent)
        self.num_changes += 1
        return self.upper_path(path)

    def writable(self, path: str, *, contents: bool = True) -> str:
        """Where to write to `path`, new or old; without `contents` an old file starts empty."""
        if is_special(path):
            return path
        if not self.exists(path):
            return self.place(path)
        mode = lstat(self.backing(path)).st_mode
        if stat.S_ISFIFO(mode) or stat.S_ISSOCK(mode) or stat.S_ISCHR(mode):
            return self.backing(path)
        if stat.S_ISREG(mode):
            self._demand_access(path, os.W_OK)
        return self.copy_up(path, contents=contents)

    def remove(self, path: str) -> None:
        """Take a file, a link or an empty directory out of the view."""
        self.num_changes += 1
        self._demand_access(os.path.dirname(path), os.W_OK | os.X_OK)
        upper = self.upper_path(path)
        mode = lstat(self.backing(path)).st_mode
        if _lexists(upper):
            (os.rmdir if stat.S_ISDIR(mode) else os.unlink)(upper)
        self.hide(path)
        if not stat.S_ISREG(mode):
            self.links_changed()

    def hide(self, path: str) -> None:
        """Hide the person's file or directory at `path`, if any, from the run."""
        if not self._in_lower(path):
            return
        marker = self.whiteouts + path
        if os.path.isdir(marker):
            shutil.rmtree(marker)
        os.makedirs(os.path.dirname(marker), exist_ok=True)
        open(marker, "x").close()

    def changed(self) -> Iterator[str]:
        """Files, links and empty new directories in upper, as canonical paths; directories end in `/`."""
        yield from (path for path in self._below(self.upper) if not (path.endswith("/") and self._in_lower(path[:-1])))

    def written(self) -> Iterator[str]:
        """As `changed`, and what is in the directory for temporary files."""
        yield from self.changed()
        yield from self._below(self.temporary)

    def _below(self, top: str) -> Iterator[str]:
        for directory, names, files in os.walk(top):
            links = [name for name in names if os.path.islink(os.path.join(directory, name))]
            here = directory.removeprefix(self.upper)
            yield from (os.path.join(here, name) for name in files + links)
            if directory != top and not names and not files:
                yield here + "/"

    def hidden(self) -> Iterator[str]:
        """What the run has deleted and not made again; directories end in `/`, also one made again."""
        for directory, _, files in os.walk(self.whiteouts):
            for marker in files:
                path = os.path.join(directory, marker).removeprefix(self.whiteouts)
                if os.path.isdir(path) and not os.path.islink(path):
                    yield path + "/"
                elif not _lexists(self.upper + path):
                    yield path

    def _layers(self, path: str) -> list[str]:
        backing = self.backing(path)
        return [path, backing] if backing != path and self._in_lower(path) else [backing]

    def _in_lower(self, path: str) -> bool:
        return not self.owns(path) and _lexists(path) and not self._hidden(path)

    def _hidden(self, path: str) -> bool:
        try:
            return stat.S_ISREG(lstat(self.whiteouts + path).st_mode)
        except NotADirectoryError:
            return True
        except FileNotFoundError:
            return False

    def _hidden_names(self, path: str) -> set[str]:
        try:
            with os.scandir(self.whiteouts + path) as markers:
                return {marker.name for marker in markers if marker.is_file()}
        except (FileNotFoundError, NotADirectoryError):
            return set()

    def _demand_access(self, path: str, mode: int) -> None:
        judged = path if self._is_merely_copied(path) else self.backing(path)
        if not os.access(judged, mode):
            raise os_error(errno.EACCES)

    def _is_merely_copied(self, path: str) -> bool:
        """Whether `path` is a directory whose copy in upper is writable for us only."""
        if not self._in_lower(path) or not os.path.isdir(path):
            return False
        return stat.S_IMODE(os.stat(self.backing(path)).st_mode) == _mode_of_copy(os.stat(path).st_mode)


def _copy_node(lower: str, upper: str, *, contents: bool) -> None:
    mode = lstat(lower).st_mode
    if stat.S_ISDIR(mode):
        with suppress(FileExistsError):  # another process of the run may have been faster
            os.mkdir(upper)
    elif stat.S_ISREG(mode) and not contents:
        open(upper, "x").close()
    else:
        shutil.copyfile(lower, upper, follow_symlinks=False)
    shutil.copystat(lower, upper, follow_symlinks=False)
    if stat.S_ISDIR(mode):
        os.chmod(upper, _mode_of_copy(mode))


def _mode_of_copy(mode: int) -> int:
    """That of a directory in upper: ours to write in, whether or not the run may."""
    return stat.S_IMODE(mode) | stat.S_IRWXU


def _lexists(path: str) -> bool:
    try:
        lstat(path)
    except OSError:
        return False
    return True
