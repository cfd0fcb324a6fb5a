"""`peaksight fix`: the fastest plan that fits."""

import shlex
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any

import click

from peaksight.cli.certifying import certify_plan, keeps_its_class
from peaksight.cli.cheapest import answer_cheapest
from peaksight.cli.completion import files
from peaksight.cli.formats import format_option, script_of
from peaksight.cli.frameworks import trains_under_jax
from peaksight.cli.from_capsule import from_capsule
from peaksight.cli.jax_searching import search_jax
from peaksight.cli.kept_files import check_can_keep
from peaksight.cli.output import Output, quiet_option
from peaksight.cli.pages import fix_page
from peaksight.cli.publish import FILE, Answer, Destinations, destination_options, publish_answer, write_file
from peaksight.cli.script_words import script_command
from peaksight.cli.searching import CANDIDATES, HEAD_ROOM, search
from peaksight.cli.simulation_options import SimulationOptions, simulation_options
from peaksight.cli.sweeps import Asked, answer_sweep, sweep_options, two_questions
from peaksight.cli.writing_back import check_edits, write_into_script
from peaksight.errors import PeaksightError, PlanError, UnsupportedError
from peaksight.extras import NO_DIFF, check_codemod, is_installed
from peaksight.planning.situation import Situation
from peaksight.planning.variants import variants_of
from peaksight.records import Report, ScriptCommand
from peaksight.records.findings import Effect
from peaksight.records.plan_file import write_plan
from peaksight.records.proposals import FixReport
from peaksight.reporting.github import fix_annotations
from peaksight.reporting.incident import incident_to_markdown
from peaksight.reporting.json import fix_to_json
from peaksight.reporting.plans import render_fix

A_PLAN_FITS, NONE_FITS = 0, 1
# Head room in percent that no plan leaves: the search goes on to the smallest.
NO_LIMIT = 100.0


@click.command(
    context_settings={"allow_interspersed_args": False},
    short_help="Search for the fastest plan with which a script fits.",
)
@simulation_options
@click.option(
    "--class",
    "allowed",
    type=click.Choice([each.value for each in Effect]),
    default=Effect.ROUNDING.value,
    show_default=True,
    help="The most that a plan may change of the training.",
)
@click.option(
    "--head-room",
    type=click.FloatRange(0, 50),
    default=HEAD_ROOM,
    show_default=True,
    metavar="PERCENT",
    help="How much of the card's usable memory a plan has to leave.",
)
@click.option(
    "--candidates",
    type=click.IntRange(min=1),
    default=CANDIDATES,
    show_default=True,
    metavar="N",
    help="How many plans to simulate at most, beside those that tell what each part of the best does.",
)
@click.option(
    "--vary",
    multiple=True,
    metavar="FLAGS",
    help="Flags of SCRIPT to try with other values, as in '--batch 8,4,2 --accum 1,2,4'; a step sees as many samples.",
)
@sweep_options
@click.option(
    "--apply",
    "plan",
    type=FILE,
    metavar="FILE",
    help="Write the plan that fits, for `run --plan FILE`, and beside it FILE.diff.",
)
@click.option(
    "--from",
    "capsule",
    type=click.Path(exists=True, path_type=Path),
    metavar="CAPSULE",
    help="Plan from an OOM capsule of `peaksight watch`: its card, settings, ranks, step, and command if none follows.",
)
@click.option("--write", is_flag=True, help="Make the plan's edits in SCRIPT; what git does not have is kept as .orig.")
@click.option("--certify", is_flag=True, help="Run SCRIPT with and without the plan that fits, as `verify --plan`.")
@click.option("--with", "extra", default="", metavar="ARGS", help="Arguments for --certify, as for a smaller size.")
@click.option("--report", type=FILE, metavar="FILE", help="Write what was found as a post-mortem in Markdown.")
@destination_options
@format_option
@quiet_option
@click.option("-m", "is_module", is_flag=True, help="SCRIPT is a module, as in `python -m`.")
@click.argument("words", nargs=-1, type=click.UNPROCESSED, shell_complete=files, metavar="SCRIPT [ARGS]...")
def fix(
    words: tuple[str, ...],
    is_module: bool,
    allowed: str,
    head_room: float,
    candidates: int,
    vary: tuple[str, ...],
    cheapest: bool,
    plan: Path | None,
    capsule: Path | None,
    write: bool,
    certify: bool,
    extra: str,
    **options: Any,
) -> int:
    """Search for the fastest plan with which SCRIPT fits, and still trains the same.

    Every plan is simulated before it is shown. The exit code is 0 if one fits, 1 if none does or --certify finds that
    it changes more than its class, 2 without an answer.
    """
    simulation = SimulationOptions.taken_from(options)
    for_a_plan = plan or write or certify or options["report"]
    asked = Asked.taken_from(
        options, head_room=head_room, budget=candidates, others=bool(vary or cheapest or for_a_plan)
    )
    if cheapest and for_a_plan:
        raise two_questions()
    output = Output(quiet=options.pop("quiet"))
    to = Destinations(**options, plan=plan, diff=plan.with_suffix(".diff") if plan else None)
    to.check()
    if write:
        check_codemod()
    if capsule is not None:
        command, simulation = from_capsule(capsule, words, simulation, is_module=is_module, output=output)
    else:
        command = script_command(words, is_module=is_module)
    under_jax = trains_under_jax(command)
    if under_jax:
        _check_under_jax(write=write, certify=certify, vary=bool(vary), sweep=asked is not None or cheapest)
    elif not write and not is_installed("libcst"):
        output.say(NO_DIFF)
    command = simulation.launched(command)
    if write:
        check_can_keep(Path(command.target))
    if asked is not None:
        return answer_sweep(asked, command, simulation, to, output)
    room = NO_LIMIT if cheapest else head_room
    if under_jax:
        found, situation = search_jax(command, simulation, Effect(allowed), room, candidates, output)
    else:
        variants = variants_of(command.args, vary)
        found, situation = search(command, simulation, Effect(allowed), room, candidates, variants, output)
    if cheapest:
        return answer_cheapest(found, command, simulation, head_room, to, output)
    if certify and found.plan and not found.original.fits:
        found = _certified(found, situation, command, shlex.split(extra), simulation, to, output)
    return _act_on(found, situation, simulation, to, output, write=write)


def _certified(
    found: FixReport,
    situation: Situation,
    command: ScriptCommand,
    extra: list[str],
    options: SimulationOptions,
    to: Destinations,
    output: Output,
) -> FixReport:
    """`found` with the certificate of its plan; where there is none, what was found is published: it took long."""
    assert found.plan is not None
    try:
        return replace(found, certificate=certify_plan(found.plan, command, tuple(extra), options.steps, output))
    except PeaksightError:
        _publish(found, situation.report, to, output)
        raise


def _act_on(
    found: FixReport, situation: Situation, options: SimulationOptions, to: Destinations, output: Output, *, write: bool
) -> int:
    """Make the plan's edits as far as they were asked for, publish it, and return the exit code."""
    holds = _holds(found)
    if holds and found.diff and (write or to.diff):
        found = _with_checked_edits(found, situation, options, output)
    try:
        if holds and write:
            found = write_into_script(found, situation, output)
    finally:
        _publish(found, situation.report, to, output)
    return A_PLAN_FITS if holds else NONE_FITS


def _check_under_jax(**asked: bool) -> None:
    """Raise UnsupportedError where something is asked for that is there for scripts of torch only."""
    options = {"write": "--write", "certify": "--certify", "vary": "--vary", "sweep": "--sweep and its like"}
    for name, is_asked in asked.items():
        if is_asked:
            raise UnsupportedError(
                f"Can't do {options[name]} for a script under JAX: its plans are simulated and said in words. Leave it "
                "out; `peaksight.jax.verify` compares two functions.",
                slug="jax-plan",
            )


def _holds(found: FixReport) -> bool:
    """Whether there is a plan, and nothing speaks against it."""
    return found.plan is not None and (not found.certificate or keeps_its_class(found.certificate, found.plan))


def _with_checked_edits(
    found: FixReport, situation: Situation, options: SimulationOptions, output: Output
) -> FixReport:
    """`found`, without its diff where the script would not be that of the plan."""
    try:
        check_edits(found, situation, options, output)
    except PlanError as error:
        output.warn(str(error))
        return replace(found, diff="", written=tuple(replace(each, in_diff=False) for each in found.written))
    return found


def _publish(found: FixReport, report: Report, to: Destinations, output: Output) -> None:
    plan = found.plan
    if to.plan and plan is not None:
        write_file(to.plan, lambda path: write_plan(path, plan), output)
    if to.diff and found.diff:
        write_file(to.diff, lambda path: path.write_bytes(found.diff.encode()), output)
    if to.report:
        write_file(to.report, lambda path: path.write_text(incident_to_markdown(found, report), "utf-8"), output)
    answer = Answer(
        render=partial(render_fix, found),
        json=partial(fix_to_json, found),
        page=partial(fix_page, found),
        annotations=partial(fix_annotations, found),
        summary=lambda: incident_to_markdown(found, report),
        target=script_of(found.argv),
    )
    publish_answer(answer, to, output)
