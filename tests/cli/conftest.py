"""Fixtures of the command line's tests."""

from functools import partial

import pytest

import helpers_commands


@pytest.fixture
def peaksight(tmp_path):
    """Runs the command line in an empty directory."""
    return partial(helpers_commands.peaksight, cwd=tmp_path)
