"""`python -m peaksight --plan plan.json train.py ARGS`: a real run under a plan."""

import runpy
import sys
from pathlib import Path

import click

from peaksight.cli.plans import PLAN_FILE, under_plan
from peaksight.cli.script_words import script_command
from peaksight.records import ScriptCommand


@click.command(hidden=True, context_settings={"allow_interspersed_args": False})
@click.option("--plan", type=PLAN_FILE, metavar="FILE", required=True, help="The plan.")
@click.option("-m", "is_module", is_flag=True, help="SCRIPT is a module, as in `python -m`.")
@click.argument("words", nargs=-1, type=click.UNPROCESSED, metavar="SCRIPT [ARGS]...")
def planned(words: tuple[str, ...], plan: Path, is_module: bool) -> int:
    """Run SCRIPT for real, with the changes of a plan."""
    command, read = under_plan(script_command(words, is_module=is_module), plan)
    assert read is not None
    from peaksight.overlays.apply import apply_changes
    from peaksight.overlays.patches import Patches

    with Patches() as patches:
        applied = apply_changes(read.changes, patches)
        try:
            _run(command)
        finally:
            for kind in applied.without_effect():
                click.echo(f"peaksight: of the plan, {kind} changed nothing in this run.", err=True)
    return 0


def _run(command: ScriptCommand) -> None:
    """As `python script.py` would."""
    sys.argv = [command.target, *command.args]
    if command.is_module:
        runpy.run_module(command.target, run_name="__main__", alter_sys=True)
    else:
        sys.path[0] = str(Path(command.target).resolve().parent)
        runpy.run_path(command.target, run_name="__main__")
