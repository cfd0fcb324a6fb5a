"""Who this process is among those of its launch."""

import os
import platform
import socket
import time
from pathlib import Path

from peaksight import __version__
from peaksight.records.watched import WatchedProcess

# What launchers tell their processes: torchrun and accelerate, then SLURM.
_RANK = ("RANK", "SLURM_PROCID")
_LOCAL_RANK = ("LOCAL_RANK", "SLURM_LOCALID")
_WORLD_SIZE = ("WORLD_SIZE", "SLURM_NTASKS")
# torchrun's for a launch that was given no name.
_NO_RUN = ("", "none")


def this_process(argv: tuple[str, ...]) -> WatchedProcess:
    """This process, which runs `argv`."""
    return WatchedProcess(
        run=_run(),
        argv=argv,
        rank=_number(_RANK, 0),
        local_rank=_number(_LOCAL_RANK, 0),
        world_size=_number(_WORLD_SIZE, 1),
        host=socket.gethostname(),
        pid=os.getpid(),
        started=time.time(),
        peaksight=__version__,
        python=platform.python_version(),
        restart=_number(("TORCHELASTIC_RESTART_COUNT",), 0),
        slurm_job=os.environ.get("SLURM_JOB_ID", ""),
    )


def _number(names: tuple[str, ...], default: int) -> int:
    return next((int(value) for name in names if (value := os.environ.get(name, "")).isdecimal()), default)


def _run() -> str:
    """A name that all processes of a launch come to by themselves, and those of another launch do not."""
    if (name := os.environ.get("TORCHELASTIC_RUN_ID", "")) not in _NO_RUN:
        return name
    if job := os.environ.get("SLURM_JOB_ID"):
        return f"slurm-{job}.{os.environ.get('SLURM_STEP_ID', '0')}"
    world_size = _number(_WORLD_SIZE, 1)
    if world_size == 1:
        return f"{time.strftime('%Y%m%d-%H%M%S')}-{os.getpid()}"
    if _number(("LOCAL_WORLD_SIZE",), world_size) == world_size:
        return f"launch-{os.getppid()}-{_start_of_parent()}"
    return f"{os.environ.get('MASTER_ADDR', 'master')}-{os.environ.get('MASTER_PORT', '0')}"


def _start_of_parent() -> str:
    """When the launcher began, in the kernel's clock: another process that gets its number later has another one."""
    try:
        return Path(f"/proc/{os.getppid()}/stat").read_text().rpartition(")")[2].split()[19]
    except (OSError, IndexError):
        return "0"
