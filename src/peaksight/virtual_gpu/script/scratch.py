"""The scratch of a simulated run: whatever the script writes, moves or deletes happens there and only there.

Two layers keep the person's files as they are. Python's functions that open, change or look at files are replaced
(`replacements`) and work on an overlay, so that the run reads back what it wrote. An audit hook (`audit`) refuses
what gets past them, and keeps the run offline and from starting other programs. Processes that the run forks, or
starts with multiprocessing, are held to the same.

Limitations:
    Linux only, for its /proc.
    Code in C, C++ or Rust that opens files by name without Python, or connects to the network, is neither redirected
    nor refused, but for the functions listed in `native` and those whose callers use `redirect_write`.
    `io.FileIO(name, "w")`, the functions of `posix`, and those of `os` that a class body or a default argument kept
    from before the run are refused, not redirected.
    Programs that the run may start see the person's files, not the overlay.
    Renaming a directory of the person's, or appending to a file, costs a copy in the scratch directory.
"""

import os
import shutil
from types import TracebackType
from typing import Any, Self

from peaksight.overlays.patches import Patches
from peaksight.records import Approximation, ScratchWrite
from peaksight.virtual_gpu.script import journal
from peaksight.virtual_gpu.script.confinement import confine
from peaksight.virtual_gpu.script.leftovers import contain_leftovers, emptied, make_root
from peaksight.virtual_gpu.script.overlay import Overlay
from peaksight.virtual_gpu.script.path_functions import logical_path
from peaksight.virtual_gpu.script.session import trusted
from peaksight.virtual_gpu.script.shared_files import JobFiles, SharedFiles

_NOTES = {
    "network-off": "the network: a simulated run is offline, the script tried to reach {}",
    "subprocess-refused": "other programs: a simulated run does not start them, the script tried {}",
    "other-process": "other processes: only the script's own is simulated, and {} used the card too",
}
_OF_UNKNOWN_SIZE = {"other-process"}


class Scratch:
    """A temporary directory that takes the writes of the code run inside the context, removed when it is left.

    `writes` and `notes` answer inside the context and after it.
    """

    def __init__(self, job: JobFiles | None = None) -> None:
        """The ranks of a `job` have the same directory one after the other, which is left to whoever made it."""
        self._job = job

    def __enter__(self) -> Self:
        """Make the directory and put its overlay in force, in this process and those that it starts."""
        self._process = os.getpid()
        self._home = os.getcwd()
        self._overlay = Overlay(make_root() if self._job is None else emptied(self._job))
        self._shared = None if self._job is None else SharedFiles(self._overlay, self._job)
        self._final_writes: tuple[ScratchWrite, ...] | None = None
        self._final_notes: tuple[Approximation, ...] | None = None
        self._patches = Patches()
        self._patches.callback(os.chdir, self._home)
        contain_leftovers(self._patches, self._overlay)
        confine(self._patches, self._overlay)
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        """Put the real files in force again; a process forked from the run leaves the directory to the run."""
        self._patches.close()
        self._final_writes, self._final_notes = self.writes(), self.notes()
        self._overlay.close()
        if os.getpid() == self._process and self._job is None:
            shutil.rmtree(self._overlay.root, ignore_errors=True)

    def redirect_write(self, path: Any) -> str:
        """Where to write what the script means to write to `path` from the start, by other means than `open`."""
        with trusted:
            return self._overlay.writable(logical_path(self._overlay, path), contents=False)

    def redirect_read(self, path: Any) -> str:
        """Where to read what the script sees at `path`, by other means than `open`."""
        with trusted:
            return self._overlay.backing(logical_path(self._overlay, path))

    def declare(self, token: bytes, num_bytes: int) -> None:
        """Say that `token`, which a file begins with, has the place of `num_bytes` in a real run."""
        journal.record(self._overlay.root, "declared", token.hex(), num_bytes)

    def met(self, ranks: str, *, is_barrier: bool) -> None:
        """A collective of `ranks` was called: from then on they see what each has written before."""
        if self._shared is not None:
            self._shared.met(ranks, is_barrier=is_barrier)

    def writes(self) -> tuple[ScratchWrite, ...]:
        """What was written and deleted, by name; a rename of the person's file is one of each."""
        if self._final_writes is not None:
            return self._final_writes
        with trusted:
            declared = {bytes.fromhex(token): size for token, size in journal.records(self._overlay.root, "declared")}
            written = [(path, "written", self._size(path, declared)) for path in self._overlay.changed()]
            deleted = [(path, "deleted", 0) for path in self._overlay.hidden()]
            named = sorted((self._name(path), kind, size) for path, kind, size in written + deleted)
        return tuple(ScratchWrite(path=path, kind=kind, bytes=size) for path, kind, size in named)

    def notes(self) -> tuple[Approximation, ...]:
        """What was switched off and asked for all the same, one entry a kind."""
        if self._final_notes is not None:
            return self._final_notes
        with trusted:
            tried: dict[str, dict[str, None]] = {}
            for slug, what in journal.records(self._overlay.root, "note"):
                tried.setdefault(slug, {})[what] = None
        return tuple(
            Approximation(
                slug=slug, what=_NOTES[slug].format(", ".join(names)), bytes=None if slug in _OF_UNKNOWN_SIZE else 0
            )
            for slug, names in tried.items()
        )

    def refused_hosts(self) -> list[str]:
        """The hosts that the script asked for in vain, each once."""
        with trusted:
            refused = [what for slug, what in journal.records(self._overlay.root, "note") if slug == "network-off"]
        return list(dict.fromkeys(refused))

    def _name(self, path: str) -> str:
        return path.removeprefix(self._home.rstrip("/") + "/")

    def _size(self, path: str, declared: dict[bytes, int]) -> int:
        if path.endswith("/"):
            return 0
        upper = self._overlay.upper_path(path)
        size = os.lstat(upper).st_size
        token = next(filter(_head(upper, declared).startswith, declared), b"")
        return size - len(token) + declared.get(token, 0)


def _head(path: str, declared: dict[bytes, int]) -> bytes:
    """As much of the file as the longest token has; nothing of what is no file."""
    if not declared or os.path.islink(path) or not os.path.isfile(path):
        return b""
    with open(path, "rb") as file:
        return file.read(max(map(len, declared)))
