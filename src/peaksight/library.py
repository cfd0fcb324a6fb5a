"""The entry points for programs: a command in a subprocess, its report as an object; a plan in this process."""

import subprocess
import sys
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path

from peaksight.errors import PlanError, ScriptError
from peaksight.records import Report
from peaksight.records.plan import Plan
from peaksight.records.plan_file import check_script, read_plan
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


@contextmanager
def plan(path: str | Path) -> Iterator[Plan]:
    """Make the changes of the plan in `path` for the length of a `with`, around everything from the first import on.

    Raises:
        PlanError: it is no plan, or not of this script and its arguments.
    """
    read = read_plan(Path(path))
    check_script(read, sys.argv[0])
    if read.arguments is not None and tuple(sys.argv[1:]) != read.arguments:
        raise PlanError(
            f"The plan asks for other arguments: start it as {read.argv[0]} {' '.join(read.arguments)}",
            slug="plan-arguments",
        )
    from peaksight.overlays.apply import apply_changes
    from peaksight.overlays.patches import Patches

    with Patches() as patches:
        apply_changes(read.changes, patches)
        yield read


@contextmanager
def watch(
    directory: str | Path | None = None,
    *,
    tensorboard: str | Path | None = None,
    wandb: bool = False,
    mlflow: bool = False,
    prometheus: int | None = None,
    predicted: str | Path | None = None,
    scalars: Iterable[str] = (),
) -> Iterator[None]:
    """Record what each step of the training inside a `with` takes of the card, as `peaksight watch` does.

    Args:
        directory: Where each process writes a file; default: `peaksight-watch` and a name for this launch.
        tensorboard: A folder for TensorBoard.
        wandb: Log to Weights & Biases, to the active run if there is one; `mlflow` likewise.
        prometheus: Serve metrics at this port plus the local rank.
        predicted: A capture of `peaksight run --save` to compare with.
        scalars: Names of scalars that are logged, whose mean and variance are to be kept.

    Raises:
        UsageError: something that is asked for is not installed.
        CaptureFileError: `predicted` cannot be read.
    """
    from peaksight.live.watching import Watching, recording

    watching = Watching(
        directory=None if directory is None else Path(directory),
        tensorboard=None if tensorboard is None else Path(tensorboard),
        wandb=wandb,
        mlflow=mlflow,
        prometheus=prometheus,
        predicted=None if predicted is None else Path(predicted),
        scalars=tuple(scalars),
    )
    with recording(watching, tuple(sys.argv)):
        yield
