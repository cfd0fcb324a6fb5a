"""From a path to the one without links that stands for it in the merged view."""

import errno
import os
import re
from collections.abc import Callable
from functools import lru_cache

# Taken before anything is replaced: these are called for every file that a library looks for.
from os import fstat, readlink, stat, strerror
from posixpath import dirname, join, split

_SPECIAL = re.compile(r"/dev(?!/shm)(/|$)|/proc/(self|thread-self|\d+)(/|$)")
_MAX_LINKS = 40


def os_error(code: int) -> OSError:
    """The error that the kernel would give for `code`; the caller adds the file's name."""
    return OSError(code, strerror(code))


def is_special(path: str) -> bool:
    """Whether `path` is a device or a process's own file, which the overlay leaves alone."""
    return _SPECIAL.match(path) is not None


class Resolver:
    """Follows links in the merged view, in which `backing` finds the real path of a canonical one.

    Directories are remembered until `forget`. Every process that shares the overlay sees that: `forget` makes the
    file at `epoch_path` grow.
    """

    def __init__(self, backing: Callable[[str], str], epoch_path: str) -> None:
        """Start with nothing remembered."""
        self._backing = backing
        self._epoch = os.open(epoch_path, os.O_RDWR | os.O_CREAT | os.O_APPEND, 0o600)
        self._walk_remembered = lru_cache(maxsize=4096)(self._walk)

    def forget(self) -> None:
        """Follow links anew from now on."""
        os.write(self._epoch, b".")

    def close(self) -> None:
        """Let go of the file."""
        os.close(self._epoch)

    def resolve(self, path: str, *, follow: bool) -> str:
        """The canonical form of an absolute `path`, whose last component is followed if `follow`."""
        directory, name = split(path)
        if name in ("", ".", ".."):
            return self._walk(path)
        here = join(self._walk_remembered(directory, fstat(self._epoch).st_size), name)
        return self._walk(here) if follow and self._link(here) is not None else here

    def _walk(self, path: str, epoch: int = 0) -> str:
        done, rest, num_links = "/", path.split("/")[::-1], 0
        while rest:
            name = rest.pop()
            if name in ("", "."):
                continue
            if name == "..":
                stat(self._backing(done) + "/")
                done = dirname(done)
                continue
            done = join(done, name)
            if is_special(done):
                return "/".join([done, *reversed(rest)])
            target = self._link(done)
            if target is not None:
                num_links += 1
                if num_links > _MAX_LINKS:
                    raise os_error(errno.ELOOP)
                rest.extend(reversed(target.split("/")))
                done = "/" if target.startswith("/") else dirname(done)
        return done

    def _link(self, path: str) -> str | None:
        if is_special(path):
            return None
        try:
            return readlink(self._backing(path))
        except OSError:
            return None
