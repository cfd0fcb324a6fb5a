"""A bound on the processes of a run, so that a fork bomb ends in an error instead of the machine's end.

Each process of a run has a file in its scratch directory, named by its number; one that is about to start has one too.
"""

import errno
import itertools
import os

from peaksight.virtual_gpu.script.audit import Guard
from peaksight.virtual_gpu.script.overlay import Overlay
from peaksight.virtual_gpu.script.session import active, trusted

MAX_PROCESSES = 64 + 2 * (os.cpu_count() or 1)
_ABOUT_TO_START = "next-"
_numbers = itertools.count()
_reserved: list[str] = []


class TooManyProcesses(BlockingIOError):
    """What a script gets that starts one process too many: an OSError like that of the system at its limit."""

    def __init__(self) -> None:
        """As the system words it."""
        super().__init__(errno.EAGAIN, os.strerror(errno.EAGAIN))


def count_this_process(overlay: Overlay) -> None:
    """This process belongs to the run of `overlay`.

    Raises:
        TooManyProcesses: it is one too many.
    """
    demand_room(overlay)
    with trusted:
        _write(_file(overlay, str(os.getpid())))


def demand_room(overlay: Overlay) -> None:
    """Raise what `os.fork` raises at the limit of the system, if the run has started as many processes as it may."""
    if _num_processes(overlay) > MAX_PROCESSES:
        raise TooManyProcesses


def _num_processes(overlay: Overlay) -> int:
    with trusted:
        directory = _file(overlay, "")
        names = os.listdir(directory) if os.path.isdir(directory) else []
        return sum(name.startswith(_ABOUT_TO_START) or os.path.exists(f"/proc/{name}") for name in names)


def _guard_fork(overlay: Overlay) -> None:
    demand_room(overlay)
    with trusted:
        _reserved[:] = [_file(overlay, f"{_ABOUT_TO_START}{os.getpid()}-{next(_numbers)}")]
        _write(_reserved[0])


def _count_forked() -> None:
    overlay = active()
    if overlay is not None and _reserved:
        with trusted:
            os.replace(_reserved[0], _file(overlay, str(os.getpid())))


def _write(file: str) -> None:
    os.makedirs(os.path.dirname(file), exist_ok=True)
    open(file, "w").close()


def _file(overlay: Overlay, name: str) -> str:
    return os.path.join(overlay.root, "processes", name)


os.register_at_fork(after_in_child=_count_forked)
PROCESS_GUARDS: dict[str, Guard] = {"os.fork": _guard_fork, "os.forkpty": _guard_fork}
