"""The entry point for programs: the command in a subprocess, its report as an object."""

import subprocess
import sys
from collections.abc import Mapping

from peaksight.errors import ScriptError
from peaksight.records import Report
from peaksight.reporting import report_from_json


def option_words(options: Mapping[str, str | int]) -> list[str]:
    """`options` as they are typed: a flag is there or not, the others have a value."""
    words = []
    for name, value in options.items():
        option = f"--{name.replace('_', '-')}"
        words += ([option] if value else []) if isinstance(value, bool) else [option, str(value)]
    return words


def run(*command: str, **options: str | int) -> Report:
    """Simulate `command` (`"train.py", "--batch", "8"`) and return its report.

    Args:
        options: With underscores: `run("train.py", gpu="t4", reserved_by_others="1GiB", worst_batch=True)`.

    Raises:
        ScriptError: there is no report, because the command line was refused or the script could not be started.
            A script that failed has one, with its code in `script_exit`.
    """
    arguments = [sys.executable, "-m", "peaksight", "run", "--json", "-", *option_words(options), *command]
    done = subprocess.run(arguments, capture_output=True, check=False)
    if not done.stdout:
        raise ScriptError(done.stderr.decode(errors="replace").strip(), slug="no-report")
    return report_from_json(done.stdout)
