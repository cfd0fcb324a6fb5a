"""`peaksight watch`: a real run, recorded."""

from pathlib import Path

import click

from peaksight.cli.script_words import script_command
from peaksight.errors import UsageError
from peaksight.live.watching import Watching, recording
from peaksight.records import ScriptCommand
from peaksight.virtual_gpu.script.environment import variables
from peaksight.virtual_gpu.script.real_run import run_for_real

_DIRECTORY = click.Path(file_okay=False, resolve_path=True, path_type=Path)


@click.command(context_settings={"allow_interspersed_args": False})
@click.option("--directory", type=_DIRECTORY, metavar="DIR", help="Where to write; default: peaksight-watch/RUN.")
@click.option("-m", "is_module", is_flag=True, help="SCRIPT is a module, as in `python -m`.")
@click.argument("words", nargs=-1, type=click.UNPROCESSED, metavar="SCRIPT [ARGS]...")
def watch(words: tuple[str, ...], is_module: bool, directory: Path | None) -> int:
    """Run SCRIPT for real, and record what each step takes of the card.

    Under a launcher: `torchrun ... -m peaksight watch train.py ARGS`. The exit code is the script's own.
    """
    command = script_command(words, is_module=is_module)
    _refuse_launcher(command)
    with variables(command.environment), recording(Watching(directory=directory), command.argv) as recorder:
        try:
            exit_code = run_for_real(command, recorder.failed)
        except SystemExit as stop:
            recorder.end(_exit_code(stop))
            raise
        recorder.end(exit_code)
        return exit_code


def _refuse_launcher(command: ScriptCommand) -> None:
    """A launcher starts other processes, and it is those that are to be watched."""
    if command.processes > 1:
        raise UsageError(
            f"Can't watch {command.processes} processes from outside: let the launcher start the watching, as in "
            f"`torchrun --nproc-per-node {command.processes} -m peaksight watch {command.target}`.",
            slug="watch-launcher",
        )


def _exit_code(stop: SystemExit) -> int:
    """As Python reads it."""
    return stop.code if isinstance(stop.code, int) else int(stop.code is not None)
