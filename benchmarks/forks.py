"""Runs modules as `python -m` does, in forks of a process that has imported torch already: a tenth of the time.

`python -m benchmarks.forks MODULE...` is that process: it imports those modules, reads one request a line, and writes
the exit code of each.
"""

import json
import os
import runpy
import signal
import subprocess
import sys
from collections.abc import Mapping, Sequence
from importlib import import_module
from pathlib import Path

_ROOT = Path(__file__).parents[1]
# Seconds after which a run that hangs is ended.
_LIMIT = 900


class Forks:
    """A process that has `imported` modules, and runs others one after the other."""

    def __init__(self, *imported: str) -> None:
        """Start it."""
        command = [sys.executable, "-m", __name__, *imported]
        pipes = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE}
        hashes = {"PYTHONHASHSEED": "0"}  # which a fork has of its parent, whatever its own environment says
        self._server = subprocess.Popen(command, cwd=_ROOT, text=True, env=os.environ | hashes, **pipes)

    def run(
        self, words: Sequence[str], *, directory: Path, environment: Mapping[str, str], streams: Sequence[Path]
    ) -> int:
        """Run a module with arguments, `words`, and return the exit code; `streams` are stdin, stdout and stderr."""
        assert self._server.stdin and self._server.stdout
        request = {"words": list(words), "environment": dict(environment), "directory": str(directory)}
        request["streams"] = [str(path) for path in streams]
        self._server.stdin.write(json.dumps(request) + "\n")
        self._server.stdin.flush()
        return int(self._server.stdout.readline())

    def close(self) -> None:
        """End it."""
        self._server.communicate()


def _serve() -> dict | None:
    """Fork for each request, and return it in the fork; None once there are no more."""
    for line in sys.stdin:
        process = os.fork()
        if not process:
            return json.loads(line)
        print(os.waitstatus_to_exitcode(os.waitpid(process, 0)[1]), flush=True)
    return None


def _run(words: list[str], environment: dict[str, str], directory: str, streams: list[str]) -> None:
    """Where the file descriptors are those of a process of its own."""
    signal.alarm(_LIMIT)
    for descriptor, path in enumerate(streams):
        with open(path, "ab" if descriptor else "rb") as stream:
            os.dup2(stream.fileno(), descriptor)
    os.environ.clear()
    os.environ.update(environment)
    os.chdir(directory)
    sys.argv[1:] = words[1:]
    runpy.run_module(words[0], run_name="__main__", alter_sys=True)


if __name__ == "__main__":
    for name in sys.argv[1:]:
        import_module(name)
    if request := _serve():
        _run(**request)
