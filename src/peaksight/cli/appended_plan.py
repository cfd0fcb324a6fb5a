"""`run --fix`: the best plan, below the report of a run that does not fit."""

from functools import partial
from pathlib import Path

from peaksight.cli.frameworks import trains_under_jax
from peaksight.cli.jax_searching import search_jax
from peaksight.cli.output import Output
from peaksight.cli.publish import Destinations
from peaksight.cli.searching import CANDIDATES, HEAD_ROOM, search
from peaksight.cli.simulation_options import SimulationOptions
from peaksight.errors import UsageError
from peaksight.records import ScriptCommand
from peaksight.records.findings import Effect
from peaksight.reporting.plans import answer_line, render_fix


def check_alone(plan: Path | None) -> None:
    """Raise UsageError where a run is under a plan already."""
    if plan is not None:
        raise UsageError("--fix searches for a plan, and --plan gives one: leave one of them out.", slug="plan-and-fix")


def append_plan(command: ScriptCommand, options: SimulationOptions, to: Destinations, output: Output) -> None:
    """Search as `peaksight fix` does without options, and print what was found; a line where stdout is taken."""
    if trains_under_jax(command):
        found, _ = search_jax(command, options, Effect.ROUNDING, HEAD_ROOM, CANDIDATES, output)
    else:
        found, _ = search(command, options, Effect.ROUNDING, HEAD_ROOM, CANDIDATES, (), output)
    if to.take_stdout:
        output.warn(answer_line(found))
    else:
        output.print("\n")
        output.draw(partial(render_fix, found))
