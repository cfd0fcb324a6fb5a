"""A library in C that ends the process gives no answer, whatever its exit code."""

import os
import subprocess
import sys

import pytest

DRIVER = """
import sys
from peaksight.records import ScriptCommand
from peaksight.virtual_gpu.script import Scratch, run_script
with Scratch():
    ending = run_script(ScriptCommand(target="train.py"))
print("ended", ending.exit_code, flush=True)
import ctypes
if "later" in sys.argv:
    ctypes.CDLL(None).exit(5)
"""


@pytest.fixture
def run(tmp_path):
    """Runs scripts of this text in a process of their own, with a directory for temporary files."""
    (tmp_path / "temporary").mkdir()

    def run(text, *args):
        (tmp_path / "train.py").write_text(text)
        environment = {"TMPDIR": str(tmp_path / "temporary")}
        command = [sys.executable, "-c", DRIVER, *args]
        return subprocess.run(command, cwd=tmp_path, env=os.environ | environment, capture_output=True, text=True)

    return run


def test_exit_of_a_library(run, tmp_path):
    """GIVEN a package with kernels that calls `exit(1)`, THEN it is named, the exit code is 2 and nothing stays."""
    (tmp_path / "bitsandbytes").mkdir()
    (tmp_path / "bitsandbytes" / "__init__.py").write_text("import ctypes\ndef check():\n    ctypes.CDLL(None).exit(1)")
    done = run("import bitsandbytes\nprint('so far')\nbitsandbytes.check()")

    assert (2, "so far\n") == (done.returncode, done.stdout)
    assert done.stderr.startswith("peaksight: 'bitsandbytes' runs CUDA kernels of its own")
    assert done.stderr.endswith("See docs/messages.md#own-kernels.\n")
    assert [] == list((tmp_path / "temporary").iterdir())


def test_exit_of_other_code(run):
    """Also in a fork, where it is the fork's own end."""
    done = run("import ctypes, os\nif os.fork() == 0: ctypes.CDLL(None).exit(7)\nprint(os.wait()[1] >> 8)\n")

    assert (0, "7\nended 0\n", "") == (done.returncode, done.stdout, done.stderr)
    assert "docs/messages.md#native-exit." in run("import ctypes\nctypes.CDLL(None).exit(0)").stderr


def test_exit_after_the_run(run):
    """It is nobody's business any more."""
    done = run("pass", "later")

    assert (5, "ended 0\n", "") == (done.returncode, done.stdout, done.stderr)
