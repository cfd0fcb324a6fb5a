"""The entry point for programs: the command in a subprocess, its report as an object."""

import subprocess
import sys

from peaksight.errors import ScriptError
from peaksight.records import Report
from peaksight.reporting import report_from_json


def run(*command: str, **options: str | int) -> Report:
    """Simulate `command` (`"train.py", "--batch", "8"`) and return its report.

    Args:
        options: Those that take a value, with underscores: `run("train.py", gpu="t4", reserved_by_others="1GiB")`.

    Raises:
        ScriptError: there is no report, because the command line was refused or the script could not be started.
            A script that failed has one, with its code in `script_exit`.
    """
    words = [word for name, value in options.items() for word in (f"--{name.replace('_', '-')}", str(value))]
    arguments = [sys.executable, "-m", "peaksight", "run", "--json", "-", *words, *command]
    done = subprocess.run(arguments, capture_output=True, check=False)
    if not done.stdout:
        raise ScriptError(done.stderr.decode(errors="replace").strip(), slug="no-report")
    return report_from_json(done.stdout)
