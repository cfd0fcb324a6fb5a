"""`fix --sweep`, `--max-batch`: what a run needs at several values of one of its flags."""

import time
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from typing import Any

import click

from peaksight.cli.candidates import failed, simulated, simulation_of
from peaksight.cli.formats import script_of
from peaksight.cli.output import Output, Tried
from peaksight.cli.pages import sweep_page
from peaksight.cli.publish import Answer, Destinations, publish_answer
from peaksight.cli.simulation_options import SimulationOptions
from peaksight.errors import UsageError
from peaksight.planning.outcomes import outcome_of
from peaksight.planning.sweeping import Sweep
from peaksight.planning.variants import flag_and_values
from peaksight.records import ScriptCommand
from peaksight.records.sweep import SweepReport, SweptValue
from peaksight.reporting.github import sweep_annotations
from peaksight.reporting.json import sweep_to_json
from peaksight.reporting.sweeps import render_sweep
from peaksight.virtual_gpu.garbage import collect_rarely

_OPTIONS = (
    click.option("--sweep", metavar="FLAG=VALUES", help="Show what SCRIPT needs at each value, as in batch=2,4,6,8."),
    click.option("--max-batch", metavar="FLAG", help="Find the largest batch that fits by this flag of SCRIPT."),
    click.option("--cheapest", is_flag=True, help="Find the smallest card on which SCRIPT fits, by a plan if need be."),
)


def sweep_options(command: Callable[..., Any]) -> Callable[..., Any]:
    """Give a command the options of `Asked`."""
    for add_option in reversed(_OPTIONS):
        command = add_option(command)
    return command


def two_questions() -> UsageError:
    """For options that ask for more than one answer."""
    return UsageError(
        "Can't answer two questions at once: --sweep, --max-batch and --cheapest each stand alone, without "
        "--apply, --write, --certify and --report, and the first two without --vary. Ask one after the other.",
        slug="two-questions",
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class Asked:
    """The question in place of a plan: `flag` at `values`, or without them the largest that fits."""

    flag: str
    values: tuple[str, ...]
    head_room: float
    budget: int

    @classmethod
    def taken_from(cls, options: dict[str, Any], *, head_room: float, budget: int, others: bool) -> "Asked | None":
        """What the options that are taken out of `options` ask for; None without one.

        Raises:
            UsageError: there are two, or `others`, which are for a plan.
        """
        sweep, max_batch = options.pop("sweep"), options.pop("max_batch")
        if bool(sweep) + bool(max_batch) + others > 1 and (sweep or max_batch):
            raise two_questions()
        if not sweep and not max_batch:
            return None
        flag, values = flag_and_values(sweep) if sweep else flag_and_values(f"{max_batch}=1")
        return cls(flag=flag, values=tuple(values) if sweep else (), head_room=head_room, budget=budget)


def answer_sweep(
    asked: Asked, command: ScriptCommand, options: SimulationOptions, to: Destinations, output: Output
) -> int:
    """Simulate, print a table, and return the exit code: 0 if a value fits, 1 if none does."""
    collect_rarely()
    from peaksight.virtual_gpu.pool import Pool

    started = time.perf_counter()
    room = options.room
    limit_bytes = round(room.usable_bytes * (1 - asked.head_room / 100))
    each_as = partial(simulation_of, command=command, how=options.of_each)
    with Pool(room, partial(outcome_of, limit_bytes=limit_bytes), failed) as pool:
        sweep = Sweep(
            flag=asked.flag,
            arguments=command.args,
            limit_bytes=limit_bytes,
            simulate=partial(simulated, pool=pool, each_as=each_as, tell=Tried(output)),
            width=pool.workers,
            budget=asked.budget,
        )
        best = _run(sweep, asked)
    rows = {
        value: SweptValue(value=value, gpu=room.card.name, limit_bytes=limit_bytes, tried=tried)
        for value, tried in sweep.tried.items()
    }
    found = SweepReport(
        argv=command.argv,
        asked="sweep" if asked.values else "max-batch",
        flag=asked.flag,
        rows=tuple(rows.values() if asked.values else sorted(rows.values(), key=lambda row: int(row.value))),
        best=rows.get(best) if best is not None else None,
        seconds=time.perf_counter() - started,
    )
    publish_sweep(found, to, output)
    return 0 if any(row.tried.fits for row in found.rows) else 1


def _run(sweep: Sweep, asked: Asked) -> str | None:
    """The last value that fits, or the largest."""
    if asked.values:
        fitting = [value for value, tried in zip(asked.values, sweep.run(asked.values), strict=True) if tried.fits]
        return fitting[-1] if fitting else None
    largest = sweep.largest()
    return None if largest is None else str(largest)


def _markdown(found: SweepReport) -> str:
    """The table for a pull request; its templates are imported here."""
    from peaksight.reporting.exports.sweep_markdown import sweep_to_markdown

    return sweep_to_markdown(found)


def publish_sweep(found: SweepReport, to: Destinations, output: Output) -> None:
    """Print `found`, unless its JSON takes stdout, and write the file asked for."""
    answer = Answer(
        render=partial(render_sweep, found),
        json=partial(sweep_to_json, found),
        page=partial(sweep_page, found),
        annotations=partial(sweep_annotations, found),
        summary=lambda: _markdown(found),
        target=script_of(found.argv),
    )
    publish_answer(answer, to, output)
