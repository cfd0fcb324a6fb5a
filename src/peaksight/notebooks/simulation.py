"""Simulates the text of cells in a process of its own."""

import os
import re
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path
from tempfile import TemporaryDirectory

from peaksight.errors import ScriptError
from peaksight.library import option_words
from peaksight.notebooks.cells import Cell
from peaksight.notebooks.prediction import Prediction
from peaksight.records import WITHOUT_ANSWER
from peaksight.reporting import report_from_json

# Set where code of a notebook is simulated.
INSIDE = "PEAKSIGHT_PEAK_INSIDE"
_ERROR = re.compile(r"^peaksight: (.+?) See docs/messages\.md#([\w-]+)\.$", re.MULTILINE | re.DOTALL)
_COLOURS = ("FORCE_COLOR", "CLICOLOR_FORCE", "CLICOLOR")
_WIDTH = "100"
_LAST_LETTERS = 4000


def simulate_code(code: str, before: Sequence[Cell], words: Sequence[str], notes: Sequence[str] = ()) -> Prediction:
    """Run `code` after the cells `before` as a script under `peaksight run` with the options `words`.

    The script starts in the working directory of this process, finds the modules that this process finds, and reads
    nothing from stdin.

    Raises:
        ScriptError: there is no answer: the options were refused, the code failed, or it trained nothing.
    """
    with TemporaryDirectory(prefix="peaksight-") as name:
        script, json, page = (Path(name, file) for file in ("notebook.py", "report.json", "page.html"))
        text, where = _joined(before, code)
        script.write_text(text, "utf-8")
        done = subprocess.run(
            [*_COMMAND, *words, "--quiet", "--json", str(json), "--html", str(page), "--force", str(script)],
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            errors="replace",
            env=_environment(),
            check=False,
        )
        report = report_from_json(_named(script, json).encode()) if json.exists() else None
        if report is None or (report.finished in WITHOUT_ANSWER and report.oom is None):
            raise _no_answer(done.stderr, notes)
        return Prediction(report=report, text=done.stdout.rstrip(), page=_named(script, page), notes=(*where, *notes))


_COMMAND = (sys.executable, "-m", "peaksight", "run")


def options_of(options: dict[str, str | int]) -> list[str]:
    """`options` as they are typed."""
    return option_words(options)


def _joined(before: Sequence[Cell], code: str) -> tuple[str, tuple[str, ...]]:
    """The script, and where in it which cell is."""
    lines: list[str] = []
    places = []
    for cell in before:
        places.append(f"In[{cell.number}] from line {len(lines) + 1}")
        lines += [*cell.text.rstrip().splitlines(), ""]
    begin = len(lines) + 1
    where = (f"Lines of notebook.py: {', '.join(places)}, this code from line {begin}.",) if before else ()
    return "\n".join([*lines, code, ""]), where


def _named(script: Path, file: Path) -> str:
    """The text of `file` with the name of `script` in place of its path, which is another each time."""
    path = "(?:<wbr>)?".join(map(re.escape, str(script)))  # where a page may break it
    return re.sub(path, script.name, file.read_text("utf-8"))


def _environment() -> dict[str, str]:
    """This process's, with its search path, without the figures and colours of a kernel, with room for a report."""
    path = os.pathsep.join(entry or os.getcwd() for entry in sys.path)
    kept = {name: value for name, value in os.environ.items() if name not in _COLOURS}
    return kept | {"PYTHONPATH": path, "MPLBACKEND": "Agg", "COLUMNS": _WIDTH, INSIDE: "1"}


def _no_answer(said: str, notes: Sequence[str]) -> ScriptError:
    """The error that the process ended with, else what the code said when it failed."""
    if found := _ERROR.search(said):
        return ScriptError(found[1], slug=found[2])
    lines = "\n".join([said.strip()[-_LAST_LETTERS:], *notes])
    return ScriptError(
        f"No answer: the code failed in the process of its own in which it is simulated.\n{lines}\n"
        "Mend that; docs/notebooks.md says what such a process has of the notebook.",
        slug="notebook-failed",
    )
