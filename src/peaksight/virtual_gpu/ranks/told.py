"""What the first simulated rank leaves for those that are simulated after it; imports no torch."""

import os
import shutil
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any

from peaksight.virtual_gpu.script.shared_files import JobFiles


@dataclass(slots=True)
class Told:
    """What it sent, pickled, by the ranks of the group and the number of the call in it; its checkpoints; its files."""

    sent: dict[tuple[str, int], bytes] = field(default_factory=dict)
    checkpoints: dict[bytes, Any] = field(default_factory=dict)
    files: JobFiles | None = None


@contextmanager
def telling() -> Iterator[Told]:
    """For the ranks of one job, one after the other, whose scratch directory goes with it.

    A process that a script forked comes by here, too, and leaves it to the others.
    """
    root, process = os.path.realpath(tempfile.mkdtemp(prefix="peaksight-")), os.getpid()
    try:
        yield Told(files=JobFiles(root))
    finally:
        if os.getpid() == process:
            shutil.rmtree(root, ignore_errors=True)
