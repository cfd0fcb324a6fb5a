"""The search for a plan, as commands start it."""

from collections.abc import Callable, Sequence
from dataclasses import replace
from functools import partial
from typing import Any

from peaksight.cli.candidates import failed, simulated, simulation_of
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
from peaksight.records.proposals import Candidate, FixReport, Outcome
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
    each_as = partial(simulation_of, command=command, how=how)
    with Pool(room, summarise, failed) as pool:
        return answered(situation, summarise(captures), pool, each_as, budget, output), situation


def answered(
    situation: Situation,
    original: Outcome,
    pool: Any,
    each_as: Callable[[Candidate], Any],
    budget: int,
    output: Output,
) -> FixReport:
    """What up to `budget` candidates come to, each simulated in `pool` as `each_as` says."""
    simulate = partial(simulated, pool=pool, each_as=each_as, tell=Tried(output))
    question = Question(situation=situation, original=original, simulate=simulate, budget=budget, width=pool.workers)
    return answer(question)


def no_original() -> ScriptError:
    """There is nothing to search from."""
    return ScriptError(
        "No plan: the run as it is has no answer yet. See what `peaksight run` says of it, and mend that first.",
        slug="no-original",
    )


def _original(
    command: ScriptCommand, options: SimulationOptions, how: dict[str, Any], output: Output
) -> tuple[Capture, ...]:
    from peaksight.virtual_gpu import simulate_elsewhere

    output.progress("simulating the run as it is")
    progress = Progress(output)
    captures = simulate_elsewhere(command, options.room, max_failures=0, on_step=progress, **how)
    if captures is None or not any(any(step.complete for step in capture.steps) for capture in captures):
        raise no_original()
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
