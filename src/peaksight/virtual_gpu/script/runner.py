"""Running a script in this process as `python script.py` would in its own."""

import builtins
import os
import sys
import threading
from dataclasses import dataclass, replace

from peaksight.errors import PeaksightError, StopSimulation
from peaksight.overlays.patches import Patches
from peaksight.records import ScriptCommand
from peaksight.virtual_gpu.script.endings import Endings
from peaksight.virtual_gpu.script.program import Compiler, find_program, search_directory
from peaksight.virtual_gpu.script.tracebacks import print_failure

_REPLACED_BY_SCRIPTS = (
    *((sys, name) for name in ("stdin", "stdout", "stderr", "excepthook", "displayhook")),
    (threading, "excepthook"),
    (builtins, "print"),
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Ending:
    """How a script ended: its exit code, and the exception that ended it, None at its last line.

    `was_interrupted` says that there was a Ctrl-C, which the script caught.
    """

    exit_code: int
    error: BaseException | None = None
    was_interrupted: bool = False


def run_script(command: ScriptCommand, compiler: Compiler | None = None) -> Ending:
    """Run `command` as `__main__` to its end, compiled by `compiler` where that can do it.

    A failure of the script is printed as Python prints it. StopSimulation, KeyboardInterrupt and our own errors
    pass, after the script's `finally` blocks. What Python sets up for a script is put back at the end; atexit
    handlers are left alone.
    """
    process = os.getpid()
    try:
        ending = _run_here(command, compiler)
    except BaseException:
        if os.getpid() == process:
            raise
        ending = Ending(exit_code=1)
    if os.getpid() != process:
        # A process that the script forked: its end is not the end of the run.
        raise SystemExit(ending.exit_code)
    return ending


def _run_here(command: ScriptCommand, compiler: Compiler | None) -> Ending:
    threads = set(threading.enumerate())
    with Patches() as patches:
        _set_up(patches, command)
        endings = Endings(patches)
        ending = _run(command, compiler)
        _wait_for_threads(set(threading.enumerate()) - threads)
        return replace(ending, was_interrupted=endings.was_interrupted)


def _set_up(patches: Patches, command: ScriptCommand) -> None:
    patches.callback(os.chdir, os.getcwd())
    patches.set(sys, "path", [search_directory(command), *sys.path[0 if sys.flags.safe_path else 1 :]])
    patches.set(sys, "argv", ["-m" if command.is_module else command.target, *command.args])
    patches.callback(sys.modules.__setitem__, "__main__", sys.modules["__main__"])
    for owner, name in _REPLACED_BY_SCRIPTS:
        patches.set(owner, name, getattr(owner, name))


def _run(command: ScriptCommand, compiler: Compiler | None) -> Ending:
    try:
        _execute(command, compiler)
    except SystemExit as stop:
        return Ending(exit_code=_exit_code(stop), error=stop)
    except (StopSimulation, KeyboardInterrupt, PeaksightError):
        raise
    except BaseException as error:
        print_failure(error)
        return Ending(exit_code=1, error=error)
    return Ending(exit_code=0)


def _execute(command: ScriptCommand, compiler: Compiler | None) -> None:
    program = find_program(command)
    sys.argv[0] = program.argv0
    module = program.make_module()
    sys.modules["__main__"] = module
    exec(program.compile(compiler), vars(module))


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
