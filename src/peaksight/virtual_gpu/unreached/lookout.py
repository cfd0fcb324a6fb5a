"""Looks at each step what the training loop has not come to yet, and says at the end what it never came to."""

import os
import sys
from collections.abc import Iterator

from peaksight.overlays.patches import Patches
from peaksight.records import NotReached
from peaksight.virtual_gpu.source_lines import SourceLines
from peaksight.virtual_gpu.unreached.branches import Missed, Unreached
from peaksight.virtual_gpu.unreached.device_work import DeviceWork
from peaksight.virtual_gpu.unreached.hooks import Hooks
from peaksight.virtual_gpu.unreached.probed_files import ProbedFiles
from peaksight.virtual_gpu.unreached.schedules import Schedules
from peaksight.virtual_gpu.unreached.training_frames import calling_frames, regions_of

# A run that stops by itself has no more steps than that.
MAX_LOOKS = 20


class Lookout:
    """The lines with device work that one run does not reach."""

    def __init__(self, script_dir: str) -> None:
        """Files below `script_dir` and below the working directory are looked at, and named relative to the former."""
        lines = SourceLines(script_dir)
        self.files = ProbedFiles((script_dir, os.getcwd()), lines)
        self._work = DeviceWork(self.files.tree_of)
        self._hooks = Hooks(self.files, self._work)
        self._schedules = Schedules(lines)
        self._found: dict[NotReached, Missed] = {}
        self._num_looks = 0
        self._has_failed = False

    def install(self, patches: Patches) -> None:
        """Compile the person's modules with probes until `patches` is left."""
        self.files.install(patches)

    def look(self) -> None:
        """A step ends here: note what of the loop that called it, and of what follows, was not reached yet.

        Whatever the objects of the script answer, the run goes on; nothing is known then.
        """
        if self.files and not self._has_failed and self._num_looks < MAX_LOOKS:
            self._num_looks += 1
            try:
                self._found |= {missed.line: missed for missed in self._missed()}
            except Exception:
                self._has_failed = True

    def _missed(self) -> Iterator[Missed]:
        frames = calling_frames(sys._getframe())
        self._schedules.look(frames)
        running = {frame.f_code for frame in frames}
        for region in regions_of(frames, self.files):
            yield from Unreached(region, self._work, self.files, running).find()
        yield from self._hooks.missed()

    def not_reached(self) -> tuple[NotReached, ...] | None:
        """What was never reached, in the order of the source; None without a training loop that could be looked at."""
        if not self._num_looks or self._has_failed:
            return None
        missed = [each.line for each in self._found.values() if not each.file.hits[each.probe]]
        missed += self._schedules.missed()
        files = list(dict.fromkeys(_place(line)[0] for line in [*self._found, *missed]))
        return tuple(sorted(missed, key=lambda line: (files.index(_place(line)[0]), int(_place(line)[1]))))


def _place(line: NotReached) -> tuple[str, str]:
    """The file, and the number of the line in it."""
    file, _, number = line.at.rpartition(":")
    return file, number
