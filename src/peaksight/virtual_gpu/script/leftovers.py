"""What a script leaves behind in the process: its threads and its atexit handlers stay harmless."""

import atexit
import os
import shutil
import tempfile
import threading

from peaksight.overlays.patches import Patches
from peaksight.virtual_gpu.script.confinement import confine
from peaksight.virtual_gpu.script.overlay import Overlay
from peaksight.virtual_gpu.script.session import leave_behind
from peaksight.virtual_gpu.script.shared_files import KEPT, JobFiles


def make_root() -> str:
    """A fresh scratch directory."""
    return os.path.realpath(tempfile.mkdtemp(prefix="peaksight-"))


def emptied(job: JobFiles) -> str:
    """The directory of `job`, without what an earlier rank left there but for what is kept of it."""
    for entry in os.scandir(job.root):
        if not entry.is_dir():
            os.unlink(entry.path)
        elif entry.name != KEPT or not job.states:
            shutil.rmtree(entry.path, ignore_errors=True)
    return job.root


def contain_leftovers(patches: Patches, overlay: Overlay) -> None:
    """From the end of `patches` on, refuse writes to the run's threads and give its atexit handlers a new scratch.

    Handlers run last in, first out: the new scratch is entered before and left after those of the run.
    """
    afterwards = Patches()
    atexit.register(afterwards.close)
    num_handlers, threads = atexit._ncallbacks(), set(threading.enumerate())

    def contain() -> None:
        leave_behind(set(threading.enumerate()) - threads, overlay)
        if atexit._ncallbacks() > num_handlers:
            atexit.register(_confine_again, afterwards)
        else:
            atexit.unregister(afterwards.close)

    patches.callback(contain)


def _confine_again(patches: Patches) -> None:
    root = make_root()
    patches.callback(shutil.rmtree, root, ignore_errors=True)
    confine(patches, Overlay(root))
