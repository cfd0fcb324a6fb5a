"""`peaksight compare`: where the difference of two peaks comes from, and by how much each commit moves one."""

import re
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

import click

from peaksight.attribution import JudgedRun, compare_runs
from peaksight.cli.commit_peaks import commit_history
from peaksight.cli.compared import Simulation, compared, simulation_of
from peaksight.cli.completion import files
from peaksight.cli.elsewhere import OURS, saved_run, simulate
from peaksight.cli.formats import format_option, script_of
from peaksight.cli.output import Output, quiet_option
from peaksight.cli.pages import commits_page, comparison_page
from peaksight.cli.publish import Answer, Destinations, destination_options, publish_answer
from peaksight.cli.simulation_options import SimulationOptions, simulation_options
from peaksight.errors import ScriptError, UsageError
from peaksight.records import CommitHistory, Comparison
from peaksight.reporting.comparison import render_commits, render_comparison
from peaksight.reporting.github import comparison_annotations
from peaksight.reporting.json import comparison_to_json

# A command in quotes that begins with an option of its own, which click would take for one option.
_QUOTED = re.compile(r"-[^\s=]*\s")


class _Compare(click.Command):
    """Options may follow A and B, but not a script whose commits are compared: what follows that belongs to it."""

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        ctx.allow_interspersed_args = not any(word.startswith("--each-commit") for word in args)
        return super().parse_args(ctx, [f" {word}" if _QUOTED.match(word) else word for word in args])


@click.command(cls=_Compare, short_help="Say where the difference between two peaks comes from.")
@simulation_options
@click.option("--each-commit", "range_", metavar="REV..REV", help="Simulate SCRIPT at each commit after the first REV.")
@click.option("-m", "is_module", is_flag=True, help="With --each-commit: SCRIPT is a module, as in `python -m`.")
@destination_options
@format_option
@quiet_option
@click.argument(
    "words",
    nargs=-1,
    type=click.UNPROCESSED,
    shell_complete=files,
    metavar="A B | --each-commit REV..REV SCRIPT [ARGS]...",
)
def compare(words: tuple[str, ...], range_: str | None, is_module: bool, **options: Any) -> None:
    """Say where the difference between the peaks of A and B comes from.

    A and B are each the file of a `peaksight run --save`, or a command in quotes, as it follows `peaksight run`:
    "train.py --batch 8". Options in the quotes count for that one alone. With --each-commit, each commit of a range is
    compared with the one before.

    The exit code is 0 for an answer, 2 without one.
    """
    output = Output(quiet=options.pop("quiet"))
    shared, to = SimulationOptions.taken_from(options), Destinations(**options)
    to.check()
    if range_ is not None:
        words = ("-m", *words) if is_module else words
        _publish_commits(commit_history(range_, simulation_of(words, shared), output), to, output)
        return
    if len(words) != 2 or is_module:
        raise UsageError(
            f"There are two runs to compare, and {len(words)} were given: quote each command, as in "
            '`peaksight compare "train.py --batch 4" "train.py --batch 8"`.',
            slug="two-runs",
        )
    a, b = (compared(word, shared) for word in words)
    _publish_comparison(compare_runs(_run("A", a, output), _run("B", b, output)), to, output)


def _run(name: str, what: Path | Simulation, output: Output) -> JudgedRun:
    """The run of A or B; ScriptError if it has no peak that could be compared."""
    if isinstance(what, Path):
        outcome = saved_run(what)
    else:
        output.say(f"{name}: {what.given}")
        outcome = simulate(what, hear=None if output.quiet else _heard(output))
    if outcome.run is None:
        raise ScriptError(
            f"Can't compare: {name} gives no answer ({outcome.failure}). Try `peaksight run` on it alone.",
            slug="no-peak",
        )
    return outcome.run


def _heard(output: Output) -> Callable[[str], None]:
    """Passes on what a run says, as progress of this command where it is ours."""

    def hear(line: str) -> None:
        if line.startswith(OURS):
            output.progress(line.removeprefix(OURS).rstrip())
        else:
            output.pass_on(line)

    return hear


def _publish_comparison(found: Comparison, to: Destinations, output: Output) -> None:
    render, to_json = partial(render_comparison, found), partial(comparison_to_json, found)
    answer = Answer(
        render=render,
        json=to_json,
        page=partial(comparison_page, found),
        annotations=partial(comparison_annotations, found),
        summary=lambda: _markdown(found),
        target=script_of(found.b.argv),
    )
    publish_answer(answer, to, output)


def _publish_commits(found: CommitHistory, to: Destinations, output: Output) -> None:
    render, to_json = partial(render_commits, found), partial(comparison_to_json, found)
    answer = Answer(
        render=render, json=to_json, page=partial(commits_page, found), summary=lambda: _markdown_of_commits(found)
    )
    publish_answer(answer, to, output)


def _markdown(found: Comparison) -> str:
    """The comparison for a pull request; its templates are imported here."""
    from peaksight.reporting.exports.comparison_markdown import comparison_to_markdown

    return comparison_to_markdown(found)


def _markdown_of_commits(found: CommitHistory) -> str:
    from peaksight.reporting.exports.comparison_markdown import commits_to_markdown

    return commits_to_markdown(found)
