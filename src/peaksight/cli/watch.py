"""`peaksight watch`: a real run, recorded."""

import sys
from pathlib import Path
from typing import Any, NoReturn

import click

from peaksight.cli.completion import files
from peaksight.cli.output import Output
from peaksight.cli.plans import applied, plan_option, under_plan
from peaksight.cli.publish import FILE
from peaksight.cli.script_words import script_command
from peaksight.cli.watched import write_watched_page
from peaksight.errors import UsageError
from peaksight.live.watching import Watching, recording
from peaksight.records import ScriptCommand
from peaksight.virtual_gpu.script.environment import variables
from peaksight.virtual_gpu.script.real_run import run_for_real

_DIRECTORY = click.Path(file_okay=False, resolve_path=True, path_type=Path)
_CAPTURE = click.Path(dir_okay=False, exists=True, resolve_path=True, path_type=Path)


@click.command(
    context_settings={"allow_interspersed_args": False},
    short_help="Run a script for real, and record what each step takes of the card.",
)
@click.option("--directory", type=_DIRECTORY, metavar="DIR", help="Where to write; default: peaksight-watch/RUN.")
@click.option("--tensorboard", type=_DIRECTORY, metavar="DIR", help="Write scalars for TensorBoard, too.")
@click.option("--wandb", is_flag=True, help="Log to Weights & Biases, too: to the script's own run if it has one.")
@click.option("--mlflow", is_flag=True, help="Log to MLflow, too: to the script's own run if it has one.")
@click.option("--prometheus", type=click.IntRange(1, 65535), metavar="PORT", help="Serve metrics at PORT + local rank.")
@click.option("--predicted", type=_CAPTURE, metavar="FILE", help="Compare with a capture of `peaksight run --save`.")
@click.option("--html", type=FILE, metavar="FILE", help="Write a page of the steps at the end, over what is there.")
@plan_option
@click.option("-q", "--quiet", is_flag=True, help="Say only what goes wrong, and not the steps.")
@click.option("--scalar", "scalars", multiple=True, metavar="NAME", help="Watch a scalar that the script logs.")
@click.option("-m", "is_module", is_flag=True, help="SCRIPT is a module, as in `python -m`.")
@click.argument("words", nargs=-1, type=click.UNPROCESSED, shell_complete=files, metavar="SCRIPT [ARGS]...")
def watch(words: tuple[str, ...], is_module: bool, plan: Path | None, html: Path | None, **options: Any) -> NoReturn:
    """Run SCRIPT for real, and record what each step takes of the card.

    Under a launcher: `torchrun ... -m peaksight watch train.py ARGS`. With --plan, the changes of the plan are made and
    what it expects is checked. The exit code is the script's own.
    """
    command, read = under_plan(script_command(words, is_module=is_module), plan)
    _refuse_launcher(command)
    watching = Watching(expected=read.expected if read else None, **options)
    output = Output(quiet=watching.quiet)
    with variables(command.environment), recording(watching, command.argv) as recorder, applied(read):
        exit_code = run_for_real(command, recorder.failed)
        recorder.end(exit_code)
        if html is not None and recorder.process.rank == 0:
            write_watched_page(watching.directory_of(recorder.process), html, output)
    sys.exit(exit_code)  # a real run ends as Python does


def _refuse_launcher(command: ScriptCommand) -> None:
    """A launcher starts other processes, and it is those that are to be watched."""
    if command.processes > 1:
        raise UsageError(
            f"Can't watch {command.processes} processes from outside: let the launcher start the watching, as in "
            f"`torchrun --nproc-per-node {command.processes} -m peaksight watch {command.target}`.",
            slug="watch-launcher",
        )
