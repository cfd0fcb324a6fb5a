"""Files that one rank writes and others read: each is seen from the first collective on that follows its writing."""

import os
from collections import Counter
from dataclasses import dataclass, field

from peaksight.virtual_gpu.script.overlay import Overlay
from peaksight.virtual_gpu.script.session import trusted

# The files that were there when ranks met: those of a group, for the how-many-eth time.
Meeting = tuple[str, int]
# By path the name of what is kept of it, empty for an empty directory.
State = dict[str, str]
KEPT = "kept"  # where, below the root


@dataclass(slots=True)
class JobFiles:
    """The scratch directory of all ranks of a job, and what the first of them had written by each meeting."""

    root: str
    states: dict[Meeting, State] = field(default_factory=dict)


class SharedFiles:
    """Keeps what this rank has written, or where another did before, hands out what that had written by then."""

    def __init__(self, overlay: Overlay, job: JobFiles) -> None:
        """The first rank finds `job` without states."""
        self._overlay, self._job = overlay, job
        self._is_first = not job.states
        self._num_meetings: Counter[str] = Counter()
        self._num_changes = 0
        self._names: dict[int, str] = {}
        self._state: State = {}

    def met(self, ranks: str, *, is_barrier: bool) -> None:
        """This rank calls a collective with `ranks`; processes of its own may have written before a barrier."""
        meeting = ranks, self._num_meetings[ranks]
        self._num_meetings[ranks] += 1
        with trusted:
            if not self._is_first:
                self._receive(self._job.states.get(meeting, self._state))
            elif is_barrier or self._overlay.num_changes > self._num_changes:
                self._num_changes = self._overlay.num_changes
                self._keep(meeting)

    def _keep(self, meeting: Meeting) -> None:
        state = {path: self._kept(path) for path in self._overlay.written()}
        if state != self._state:
            self._job.states[meeting] = self._state = state

    def _kept(self, path: str) -> str:
        """The name of a second link to the file, which stays when the first one goes."""
        if path.endswith("/"):
            return ""
        upper = self._overlay.upper_path(path)
        inode = os.lstat(upper).st_ino
        if inode not in self._names:
            self._names[inode] = str(len(self._names))
            os.link(upper, self._place_of(self._names[inode]), follow_symlinks=False)
        return self._names[inode]

    def _receive(self, state: State) -> None:
        if state is self._state:
            return
        for path in [path for path in self._state if path not in state and not path.endswith("/")]:
            self._remove(path)
        for path, name in state.items():
            if self._state.get(path) != name:
                self._make(path, name)
        self._state = state
        self._overlay.links_changed()

    def _remove(self, path: str) -> None:
        upper = self._overlay.upper_path(path)
        if os.path.lexists(upper) and os.path.samestat(os.lstat(upper), os.lstat(self._place_of(self._state[path]))):
            os.unlink(upper)

    def _make(self, path: str, name: str) -> None:
        """As the other rank did, unless this one has made it too."""
        if path in self._state:
            self._remove(path)
        upper = self._overlay.upper_path(path)
        os.makedirs(os.path.dirname(upper), exist_ok=True)
        if name and not os.path.lexists(upper):
            os.link(self._place_of(name), upper, follow_symlinks=False)

    def _place_of(self, name: str) -> str:
        directory = os.path.join(self._job.root, KEPT)
        os.makedirs(directory, exist_ok=True)
        return os.path.join(directory, name)
