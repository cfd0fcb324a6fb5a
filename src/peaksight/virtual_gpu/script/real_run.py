"""Running a script for real, in this process, as `python script.py` would in its own."""

import atexit
import os
import signal
import sys
from collections.abc import Callable

from peaksight.records import ScriptCommand
from peaksight.virtual_gpu.script.program import find_program, search_directory
from peaksight.virtual_gpu.script.tracebacks import print_failure

_FAILED = 1


def run_for_real(command: ScriptCommand, on_failure: Callable[[BaseException], None] = lambda error: None) -> int:
    """Run `command` as `__main__` to its end, and return its exit code.

    `on_failure` gets the error that ends it before it is printed, as Python prints it, without our frames. SystemExit
    passes, for its code is Python's to read; after a Ctrl-C the process ends as one in which nothing caught it.
    """
    sys.path[:] = [search_directory(command), *sys.path[0 if sys.flags.safe_path else 1 :]]
    sys.argv = ["-m" if command.is_module else command.target, *command.args]
    program = find_program(command)
    sys.argv[0] = program.argv0
    module = sys.modules["__main__"] = program.make_module()
    ending = _Ending()
    try:
        exec(program.compile(), vars(module))
    except SystemExit:
        raise
    except BaseException as error:
        on_failure(error)
        print_failure(error)
        ending.is_interrupted = isinstance(error, KeyboardInterrupt)
        return _FAILED
    return 0


class _Ending:
    """Has a process that was interrupted die of SIGINT, as Python does, after what the script left for its end."""

    def __init__(self) -> None:
        self.is_interrupted = False
        # What is registered first is called last.
        atexit.register(self._die)

    def _die(self) -> None:
        if self.is_interrupted:
            sys.stdout.flush()
            signal.signal(signal.SIGINT, signal.SIG_DFL)
            os.kill(os.getpid(), signal.SIGINT)
