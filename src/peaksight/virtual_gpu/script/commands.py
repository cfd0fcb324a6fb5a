"""Guards of the audit net that keep a simulated run from starting and stopping other programs."""

import errno
import os
import shlex
from collections.abc import Sequence
from typing import Any

from peaksight.virtual_gpu.script.audit import Guard
from peaksight.virtual_gpu.script.journal import note
from peaksight.virtual_gpu.script.overlay import Overlay
from peaksight.virtual_gpu.script.path_functions import Redirected
from peaksight.virtual_gpu.script.session import current

# Read-only commands by which scripts and libraries learn about the machine; with the first arguments allowed.
READ_ONLY_COMMANDS: dict[str, tuple[str, ...] | None] = {
    "nvidia-smi": None,
    "uname": None,
    "lscpu": None,
    "which": None,
    "fc-list": None,
    "file": None,
    "hostname": ("-f", "-s", "-i", "-I", "-d", "--fqdn"),
    "ldconfig": ("-p",),
    "sysctl": ("-n", "-a"),
    "git": ("rev-parse", "describe", "status", "log", "diff", "show", "branch", "--version"),
}
_SHELL_SYNTAX = set("|&;<>()$`\n*?[#~{}\\")


def is_read_only(command: Sequence[str]) -> bool:
    """Whether `command` is in the list, as typed or through `sh -c`."""
    if len(command) >= 3 and os.path.basename(command[0]) == "sh" and command[1] == "-c":
        return not _SHELL_SYNTAX & set(command[2]) and is_read_only(shlex.split(command[2]))
    name = os.path.basename(command[0]) if command else ""
    if name not in READ_ONLY_COMMANDS:
        return False
    allowed = READ_ONLY_COMMANDS[name]
    return allowed is None or len(command) < 2 or command[1] in allowed


class SystemCommand(Redirected):
    """`os.system`, which tells of a command that is not there by the shell's status 127."""

    def __call__(self, command: Any) -> int:
        """Run a read-only command."""
        try:
            return self.real(command)
        except FileNotFoundError:
            return 127 << 8


class StartProcess(Redirected):
    """`_posixsubprocess.fork_exec`, the way past the audit events that multiprocessing and others take.

    The workers of multiprocessing confine themselves (see `confinement`); nobody else's would.
    """

    def __call__(self, command: Any, *args: Any) -> int:
        """Start a worker of multiprocessing or a read-only command."""
        words = [os.fsdecode(word) for word in command]
        overlay = current()
        if overlay is not None and not any(word.startswith("from multiprocessing.") for word in words):
            _demand_read_only(overlay, words)
        return self.real(command, *args)


def _guard_popen(overlay: Overlay, executable: Any, args: Any, cwd: Any, env: Any) -> None:
    words = [args] if isinstance(args, str | bytes | os.PathLike) else args
    _demand_read_only(overlay, [os.fsdecode(executable), *(os.fsdecode(word) for word in words[1:])])


def _guard_system(overlay: Overlay, command: Any) -> None:
    _demand_read_only(overlay, ["sh", "-c", os.fsdecode(command)])


def _guard_exec(overlay: Overlay, path: Any, args: Any, env: Any) -> None:
    _demand_read_only(overlay, [os.fsdecode(path), *(os.fsdecode(word) for word in args[1:])])


def _guard_kill(overlay: Overlay, pid: int, signal: int) -> None:
    if signal and not _is_own_process(pid):
        raise PermissionError(errno.EPERM, f"A simulated run does not signal process {pid}, which it did not start")


def _guard_kill_group(overlay: Overlay, group: int, signal: int) -> None:
    _guard_kill(overlay, -group, signal)


COMMAND_GUARDS: dict[str, Guard] = {
    "subprocess.Popen": _guard_popen,
    "os.system": _guard_system,
    "os.exec": _guard_exec,
    "os.posix_spawn": _guard_exec,
    "os.kill": _guard_kill,
    "os.killpg": _guard_kill_group,
}


def _demand_read_only(overlay: Overlay, command: list[str]) -> None:
    if not is_read_only(command):
        shown = command[2] if command[:2] in (["sh", "-c"], ["/bin/sh", "-c"]) else shlex.join(command)
        note(overlay.root, shown, slug="subprocess-refused")
        raise FileNotFoundError(errno.ENOENT, "A simulated run does not start other programs", shown)


def _is_own_process(pid: int) -> bool:
    """Whether `pid` is this process or descends from it."""
    while pid > 1 and pid != os.getpid():
        pid = _parent(pid)
    return pid == os.getpid()


def _parent(pid: int) -> int:
    try:
        with open(f"/proc/{pid}/stat") as status:
            return int(status.read().rpartition(")")[2].split()[1])
    except FileNotFoundError:
        return 0
