"""What is imported before anything is done: counted, for how long it takes is the machine's business."""

import subprocess
import sys

import pytest

OURS = "import peaksight"
VERSION = "from peaksight.cli import main; main(['--version'])"
COMMAND_LINE = {
    "peaksight.cli",
    "peaksight.cli.commands",
    "peaksight.cli.lazily",
    "peaksight.ending",
    "peaksight.errors",
}
CAPTURED = {"capture_output": True, "text": True, "check": True}


def imported_by(statement):
    """Modules that `statement` imports, beside what Python itself has."""
    code = f"import sys; before = set(sys.modules); {statement}; print(*set(sys.modules) - before)"
    done = subprocess.run([sys.executable, "-S", "-c", f"import sys; sys.path[:] = {sys.path!r}; {code}"], **CAPTURED)
    names = done.stdout.splitlines()[-1].split()
    return {name for name in names if name.partition(".")[0] not in sys.stdlib_module_names}


@pytest.mark.parametrize("statement, ours, theirs", [(OURS, set(), set()), (VERSION, COMMAND_LINE, {"click"})])
def test_what_is_imported(statement, ours, theirs):
    """The package itself, and for `peaksight --version` the library of the command line, but no command."""
    names = imported_by(statement)
    roots = {name.partition(".")[0] for name in names}

    assert {name for name in names if name.startswith("peaksight")} == {"peaksight"} | ours
    assert roots - {"peaksight"} == theirs


def test_a_command_imports_no_other():
    """`peaksight gpus --help` loads one module of commands."""
    names = imported_by("from peaksight.cli import main; main(['gpus', '--help'])")

    assert "peaksight.cli.gpus" in names
    assert not {f"peaksight.cli.{name}" for name in ("run", "fix", "read", "watch")} & names
