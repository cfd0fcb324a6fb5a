"""The search for a plan, as commands start it."""

from collections.abc import Sequence
from dataclasses import replace
from functools import partial
from typing import Any

from peaksight.cli.candidates import failed, simulated
from peaksight.cli.output import Output, Tried
from peaksight.cli.progress import Progress
from peaksight.cli.simulation_options import SimulationOptions
from peaksight.diagnosis.diagnose import explained_report
from peaksight.errors import ScriptError
from peaksight.planning.answer import Question, answer
from peaksight.planning.outcomes import idle_lines, outcome_of
from peaksight.planning.situation import Situation
from peaksight.planning.variants import Variant
from peaksight.records import Capture, ScriptCommand
from peaksight.records.findings import Effect
from peaksight.records.proposals import FixReport
from peaksight.virtual_gpu.garbage import collect_rarely

# By default: the share of the card's usable memory that a plan leaves, in percent, and how many are simulated.
HEAD_ROOM = 5.0
CANDIDATES = 40


def search(
    command: ScriptCommand,
    options: SimulationOptions,
    allowed: Effect,
    head_room: float,
    budget: int,
    variants: tuple[Variant, ...],
    output: Output,
) -> tuple[FixReport, Situation]:
    """Simulate the run as it is, then candidates in parallel; torch is imported in other processes only."""
    collect_rarely()
    from peaksight.virtual_gpu.pool import Pool

    room = options.room
    limit_bytes = round(room.usable_bytes * (1 - head_room / 100))
    how = options.of_each
    captures = _original(command, options, how, output)
    summarise = partial(outcome_of, limit_bytes=limit_bytes, idle=idle_lines(captures))
    situation = replace(_situation(command, options, captures, allowed, limit_bytes), variants=variants)
    with Pool(room, summarise, failed) as pool:
        question = Question(
            situation=situation,
            original=summarise(captures),
            limit_bytes=limit_bytes,
            simulate=partial(simulated, pool=pool, command=command, how=how, tell=Tried(output)),
            budget=budget,
            width=pool.workers,
        )
        return answer(question), situation


def _original(
    command: ScriptCommand, options: SimulationOptions, how: dict[str, Any], output: Output
) -> tuple[Capture, ...]:
    from peaksight.virtual_gpu import simulate_elsewhere

    output.progress("simulating the run as it is")
    progress = Progress(output)
    captures = simulate_elsewhere(command, options.room, max_failures=0, on_step=progress, **how)
    if captures is None or not any(any(step.complete for step in capture.steps) for capture in captures):
        raise ScriptError(
            "No plan: the run as it is has no answer yet. See what `peaksight run` says of it, and mend that first.",
            slug="no-original",
        )
    return captures


def _situation(
    command: ScriptCommand,
    options: SimulationOptions,
    captures: Sequence[Capture],
    allowed: Effect,
    limit_bytes: int,
) -> Situation:
    fullest = max(captures, key=lambda each: each.peak_reserved_bytes)
    report = explained_report(captures, options.room)
    return Situation(
        command=command,
        room=options.room,
        capture=fullest,
        report=report,
        limit_bytes=limit_bytes,
        allowed=allowed,
    )
