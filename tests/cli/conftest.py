"""Fixtures of the command line's tests."""

import subprocess
import sys

import pytest


@pytest.fixture
def peaksight(tmp_path):
    """Runs the command line in an empty directory."""

    def run(*words):
        command = [sys.executable, "-m", "peaksight", *map(str, words)]
        return subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, timeout=900)

    return run
