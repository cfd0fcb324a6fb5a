"""`python -m peaksight --plan plan.json train.py ARGS`: a real run under a plan."""

import sys
from pathlib import Path
from typing import NoReturn

import click

from peaksight.cli.plans import PLAN_FILE, applied, under_plan
from peaksight.cli.script_words import script_command
from peaksight.virtual_gpu.script.real_run import run_for_real


@click.command(hidden=True, context_settings={"allow_interspersed_args": False})
@click.option("--plan", type=PLAN_FILE, metavar="FILE", required=True, help="The plan.")
@click.option("-m", "is_module", is_flag=True, help="SCRIPT is a module, as in `python -m`.")
@click.argument("words", nargs=-1, type=click.UNPROCESSED, metavar="SCRIPT [ARGS]...")
def planned(words: tuple[str, ...], plan: Path, is_module: bool) -> NoReturn:
    """Run SCRIPT for real, with the changes of a plan."""
    command, read = under_plan(script_command(words, is_module=is_module), plan)
    with applied(read):
        exit_code = run_for_real(command)
    sys.exit(exit_code)  # a real run ends as Python does
