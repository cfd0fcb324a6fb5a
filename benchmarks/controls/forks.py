"""Starts recorded runs as forks of a process that has imported torch already: a tenth of the time of a new one.

What imports torch's functions by name has to be imported after they are watched: of libraries there is only torch.
`python -m benchmarks.controls.forks` is that process: it reads one request a line, and writes the exit code of each.
"""

import json
import os
import subprocess
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path

_CHILD = ["-m", "peaksight.verification.child"]


class Forks:
    """A process that runs what `record` starts; what a launcher starts gets processes of its own."""

    def __init__(self) -> None:
        """Start it."""
        self._server = subprocess.Popen(
            [sys.executable, "-m", __name__], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
        )

    def start(self, words: Sequence[str], environment: Mapping[str, str], log: Path) -> int:
        """Run `words` with their output in `log`, and return the exit code; `peaksight.verification.runs.Start`."""
        from peaksight.verification.processes import start_process

        if list(words[1:3]) != _CHILD:
            return start_process(words, environment, log)
        assert self._server.stdin and self._server.stdout
        request = {"words": words[3:], "environment": dict(environment), "log": str(log)}
        self._server.stdin.write(json.dumps(request) + "\n")
        self._server.stdin.flush()
        return int(self._server.stdout.readline())

    def close(self) -> None:
        """End it."""
        self._server.communicate()


def _serve() -> None:
    import torch._inductor  # noqa: F401 (use_deterministic_algorithms does, and the first optimizer)

    for line in sys.stdin:
        print(_run(json.loads(line)), flush=True)


def _run(request: dict) -> int:
    process = os.fork()
    if process:
        return os.waitstatus_to_exitcode(os.waitpid(process, 0)[1])
    code = 1
    try:
        code = _child(request)
    finally:
        sys.stdout.flush()
        sys.stderr.flush()
        os._exit(code)


def _child(request: dict) -> int:
    """Where the file descriptors are those of a process of its own."""
    from peaksight.verification import child

    log = os.open(request["log"], os.O_WRONLY | os.O_CREAT | os.O_TRUNC)
    os.dup2(os.open(os.devnull, os.O_RDONLY), 0)
    os.dup2(log, 1)
    os.dup2(log, 2)
    os.environ.clear()
    os.environ.update(request["environment"])
    return child.main(request["words"])


if __name__ == "__main__":
    _serve()
