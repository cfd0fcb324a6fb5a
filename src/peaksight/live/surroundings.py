"""What surrounds the process: SLURM's job, the control group's memory, the other processes on the card."""

import os
from collections.abc import Iterator, Mapping
from importlib import import_module
from pathlib import Path

from peaksight.records.capsule import CardProcess, HostMemory

_SLURM = (
    "SLURM_JOB_ID",
    "SLURM_JOB_NAME",
    "SLURM_STEP_ID",
    "SLURM_NODEID",
    "SLURMD_NODENAME",
    "SLURM_PROCID",
    "SLURM_LOCALID",
    "SLURM_JOB_NUM_NODES",
    "SLURM_NTASKS",
    "SLURM_RESTART_COUNT",
)
# The first version writes a limit of nearly 2^63 for none.
_NO_LIMIT_BYTES = 1 << 60


def scheduler(environment: Mapping[str, str] = os.environ) -> dict[str, str]:
    """The variables of SLURM that name job, step, node and task; empty outside of it."""
    return {name: environment[name] for name in _SLURM if name in environment}


def host_memory(root: Path = Path("/")) -> HostMemory:
    """The memory of this process's control group; what cannot be read is None. `root` is where /proc and /sys are."""
    folders = list(_groups(root))
    limits = [limit for folder in folders if (limit := _number(folder, "memory.max", "memory.limit_in_bytes"))]
    return HostMemory(
        limit_bytes=min((limit for limit in limits if limit < _NO_LIMIT_BYTES), default=None),
        used_bytes=next(_found(folders, "memory.current", "memory.usage_in_bytes"), None),
        oom_kills=next((kills for folder in folders if (kills := _kills(folder)) is not None), None),
    )


def _groups(root: Path) -> Iterator[Path]:
    """The folder of this process's group, then those of its parents; of both versions of control groups."""
    for line in _text(root / "proc" / "self" / "cgroup").splitlines():
        _, controllers, path = line.split(":", 2) if line.count(":") >= 2 else ("", "-", "")
        if controllers not in ("", "memory"):
            continue
        top = root / "sys" / "fs" / "cgroup" / controllers
        folder = top / path.lstrip("/")
        yield folder
        yield from (parent for parent in folder.parents if parent == top or top in parent.parents)


def _found(folders: list[Path], *names: str) -> Iterator[int]:
    return (number for folder in folders if (number := _number(folder, *names)) is not None)


def _number(folder: Path, *names: str) -> int | None:
    text = next((text for name in names if (text := _text(folder / name).strip())), "")
    return int(text) if text.isdecimal() else None


def _kills(folder: Path) -> int | None:
    """`oom_kill 3`, in the events of a group, or in the control of the first version."""
    lines = (_text(folder / "memory.events") or _text(folder / "memory.oom_control")).splitlines()
    fields = (line.split() for line in lines)
    return next((int(words[1]) for words in fields if len(words) == 2 and words[0] == "oom_kill"), None)


def _text(path: Path) -> str:
    try:
        return path.read_text(encoding="utf-8", errors="replace")
    except OSError:
        return ""


def processes_on(bus_id: str) -> tuple[str, tuple[CardProcess, ...]]:
    """The driver's release and the processes on the card at `bus_id` (as NVML writes it); nothing without NVML.

    In a container the driver may give numbers of the host, or leave other processes out.
    """
    try:
        pynvml = import_module("pynvml")
    except ImportError:
        return "", ()
    try:
        pynvml.nvmlInit()
        try:
            handle = pynvml.nvmlDeviceGetHandleByPciBusId(bus_id.encode())
            found = pynvml.nvmlDeviceGetComputeRunningProcesses(handle)
            processes = tuple(
                CardProcess(pid=p.pid, name=_name(p.pid), bytes=p.usedGpuMemory, is_this=p.pid == os.getpid())
                for p in found
            )
            return str(pynvml.nvmlSystemGetDriverVersion()), processes
        finally:
            pynvml.nvmlShutdown()
    except pynvml.NVMLError:
        return "", ()


def _name(pid: int) -> str:
    return _text(Path("/proc", str(pid), "comm")).strip()
