"""Running a script in this process as `python script.py` would in its own."""

import builtins
import os
import signal
import sys
import threading
from dataclasses import dataclass

from peaksight.errors import PeaksightError
from peaksight.records import ScriptCommand
from peaksight.virtual_gpu.patches import Patches
from peaksight.virtual_gpu.script.program import find_program, search_directory
from peaksight.virtual_gpu.script.tracebacks import print_failure
from peaksight.virtual_gpu.stopping import StopSimulation

_REPLACED_BY_SCRIPTS = (
    *((sys, name) for name in ("stdin", "stdout", "stderr", "excepthook", "displayhook")),
    (threading, "excepthook"),
    (builtins, "print"),
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Ending:
    """How a script ended: its exit code, and the exception that ended it, None at its last line."""

    exit_code: int
    error: BaseException | None = None


def run_script(command: ScriptCommand) -> Ending:
    """Run `command` as `__main__` to its end.

    A failure of the script is printed as Python prints it. StopSimulation, KeyboardInterrupt and our own errors
    pass, after the script's `finally` blocks. What Python sets up for a script is put back at the end; atexit
    handlers are left alone.
    """
    process, threads = os.getpid(), set(threading.enumerate())
    with Patches() as patches:
        _set_up(patches, command)
        ending = _run(command)
        _wait_for_threads(set(threading.enumerate()) - threads)
    if os.getpid() != process:
        # A process that the script forked: its end is not the end of the run.
        raise SystemExit(ending.exit_code)
    return ending


def _set_up(patches: Patches, command: ScriptCommand) -> None:
    patches.callback(os.chdir, os.getcwd())
    patches.set(sys, "path", [search_directory(command), *sys.path[0 if sys.flags.safe_path else 1 :]])
    patches.set(sys, "argv", ["-m" if command.is_module else command.target, *command.args])
    patches.callback(sys.modules.__setitem__, "__main__", sys.modules["__main__"])
    for owner, name in _REPLACED_BY_SCRIPTS:
        patches.set(owner, name, getattr(owner, name))
    _keep_signal_handlers(patches)
    _end_run_by_exit(patches)


def _keep_signal_handlers(patches: Patches) -> None:
    if threading.current_thread() is threading.main_thread():
        for number in (signal.SIGINT, signal.SIGTERM):
            patches.callback(signal.signal, number, signal.getsignal(number) or signal.SIG_DFL)


def _end_run_by_exit(patches: Patches) -> None:
    """Have `os._exit` end the run, not the process that is to report on it; processes forked from it do end."""
    process = os.getpid()

    def leave(status: int) -> None:
        if os.getpid() == process:
            raise SystemExit(status)
        exit_process(status)

    exit_process = patches.set(os, "_exit", leave)


def _run(command: ScriptCommand) -> Ending:
    try:
        _execute(command)
    except SystemExit as stop:
        return Ending(exit_code=_exit_code(stop), error=stop)
    except (StopSimulation, KeyboardInterrupt, PeaksightError):
        raise
    except BaseException as error:
        print_failure(error)
        return Ending(exit_code=1, error=error)
    return Ending(exit_code=0)


def _execute(command: ScriptCommand) -> None:
    program = find_program(command)
    sys.argv[0] = program.argv0
    module = program.make_module()
    sys.modules["__main__"] = module
    exec(program.compile(), vars(module))


def _exit_code(stop: SystemExit) -> int:
    if stop.code is None or isinstance(stop.code, int):
        return int(stop.code or 0)
    print(stop.code, file=sys.stderr)
    return 1


def _wait_for_threads(threads: set[threading.Thread]) -> None:
    """Wait for those that Python waits for before it ends."""
    for thread in threads:
        if not thread.daemon:
            thread.join()
