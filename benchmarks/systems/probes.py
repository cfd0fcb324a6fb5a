"""Runs a probe, Python source around a training script, in a process of its own."""

import json
import os
import subprocess
import sys
import tempfile
from collections.abc import Mapping, Sequence
from pathlib import Path


def answer_of(probe: str, words: Sequence[str], settings: Mapping[str, str], timeout: float) -> dict:
    """The JSON that `probe` leaves in the file that it is given in front of `words`, or the error that it ended with.

    It runs with the variables `settings`, in an empty directory, for `timeout` seconds at most.
    """
    with tempfile.TemporaryDirectory() as directory:
        out = Path(directory, "answer.json")
        command = [sys.executable, "-c", probe, str(out), *words]
        environment = {**os.environ, **settings}
        try:
            done = subprocess.run(command, cwd=directory, env=environment, capture_output=True, timeout=timeout)
        except subprocess.TimeoutExpired:
            return {"error": f"more than {timeout:.0f} s"}
        if done.returncode or not out.exists():
            return {"error": done.stderr.decode(errors="replace")[-600:]}
        return json.loads(out.read_text())
