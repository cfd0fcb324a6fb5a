"""The command as reports print it."""

import pytest

from peaksight.records import ScriptCommand


@pytest.mark.parametrize(
    ("command", "argv"),
    [
        (ScriptCommand(target="train.py", args=("--lr", "1")), ("train.py", "--lr", "1")),
        (ScriptCommand(target="pkg.train", is_module=True), ("-m", "pkg.train")),
    ],
)
def test_argv(command, argv):
    """A module keeps its -m."""
    assert command.argv == argv
