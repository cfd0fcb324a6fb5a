"""A run in a process of its own: `peaksight run --save`, and what it saved."""

import subprocess
import sys
from collections import deque
from collections.abc import Callable, Iterable, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from tempfile import TemporaryDirectory

from peaksight.attribution import JudgedRun
from peaksight.cli.compared import Simulation
from peaksight.diagnosis.diagnose import explained_report
from peaksight.gpus import Room
from peaksight.library import option_words
from peaksight.records import WITHOUT_ANSWER, Report
from peaksight.records.capture_file import read_capture_file
from peaksight.reporting import no_answer

OURS = "peaksight: "
_WROTE = f"{OURS}Wrote "
_NUM_LAST_LINES = 50


@dataclass(frozen=True, slots=True, kw_only=True)
class RunOutcome:
    """What became of a run: its `run`, or None and why there is no answer."""

    run: JudgedRun | None
    failure: str = ""


def saved_run(path: Path) -> RunOutcome:
    """The run in the capture file `path`; CaptureFileError where it is none."""
    return _judged(path, str(path), last_lines=())


def simulate(
    simulation: Simulation,
    *,
    directory: Path | None = None,
    search_path: Sequence[str] | None = None,
    hear: Callable[[str], None] | None = None,
) -> RunOutcome:
    """Simulate a command in `directory`, with `search_path` for `sys.path`: by default, what this process has.

    The script reads nothing from stdin, and `hear` gets each line of what it prints.
    """
    with TemporaryDirectory(prefix="peaksight-") as folder:
        path = Path(folder, "run.capture")
        options = {name: value for name, value in asdict(simulation.options).items() if value is not None}
        words = [*option_words(options), "--save", str(path), "--json", "-", *simulation.words]
        process = subprocess.Popen(
            [*_python(sys.path if search_path is None else search_path), "--isolated", "run", *words],
            cwd=directory,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.PIPE,
            text=True,
            errors="replace",
        )
        with process:
            assert process.stderr is not None
            last_lines = _heard(process.stderr, hear)
        if not path.exists():
            return RunOutcome(run=None, failure=_said_last(last_lines))
        return _judged(path, simulation.given, last_lines)


def _python(search_path: Sequence[str]) -> list[str]:
    """Python with `search_path`: `-m` would look in the working directory first."""
    code = f"import sys; sys.path[:] = {list(search_path)!r}; from peaksight.cli import command; command()"
    flags: list[str] = subprocess._args_from_interpreter_flags()  # type: ignore[attr-defined]
    return [sys.executable, *flags, "-c", code]


def _heard(lines: Iterable[str], hear: Callable[[str], None] | None) -> Sequence[str]:
    """The last of `lines`, once all were heard."""
    last: deque[str] = deque(maxlen=_NUM_LAST_LINES)
    try:
        for line in lines:
            if not line.startswith(_WROTE):
                last.append(line.strip())
                if hear is not None:
                    hear(line)
    except KeyboardInterrupt:
        # It reaches the process as well, which puts things in order before it ends.
        last.extend(lines)
        raise
    return last


def _judged(path: Path, given: str, last_lines: Sequence[str]) -> RunOutcome:
    captures, room = read_capture_file(path, Room)
    run = JudgedRun.of(captures, explained_report(captures, room), given)
    if run.report.finished not in WITHOUT_ANSWER:
        return RunOutcome(run=run)
    return RunOutcome(run=None, failure=_why(run.report, last_lines))


def _why(report: Report, last_lines: Sequence[str]) -> str:
    """Why a run gives no answer: how it ended, and the last line of its traceback if there is one."""
    raised = [line for line in last_lines if line and not line.startswith(OURS)]
    cause = f" ({raised[-1]})" if report.finished == "failed" and raised else ""
    return f"{no_answer(report)}{cause}"


def _said_last(last_lines: Sequence[str]) -> str:
    said = [line for line in last_lines if line]
    last = said[-1] if said else "it ended without a word"
    return last.removeprefix(OURS).partition(" See docs/")[0].rstrip(".")
