"""Runs commands of peaksight as a person types them, without the seconds that Python takes to import torch each time.

Those that tests/docs and tests/cli/test_terminal.py run are started from a shell or on a terminal, as new processes.
"""

import atexit
import os
import subprocess
import tempfile
from functools import cache
from importlib.util import find_spec
from pathlib import Path

from benchmarks.forks import Forks

# What every simulation imports before its script is run, and torch with the first fake tensor.
IMPORTED = ("peaksight.cli.run", "peaksight.virtual_gpu.simulation", "torch.fx.experimental.symbolic_shapes")


def peaksight(*words, cwd, env=os.environ, stdin=""):
    """The finished command `peaksight` with `words`, run in `cwd`."""
    words = ["peaksight", *map(str, words)]
    with tempfile.TemporaryDirectory() as folder:
        streams = typed, out, errors = [Path(folder, name) for name in ("stdin", "stdout", "stderr")]
        typed.write_text(stdin)
        code = _forks().run(words, directory=Path(cwd), environment=env, streams=streams)
        return subprocess.CompletedProcess(words, code, out.read_text(), errors.read_text())


@cache
def _forks():
    forks = Forks(*(IMPORTED if find_spec("torch") else ()))
    atexit.register(forks.close)
    return forks
