"""`fix --write`: those changes of a plan that are edits of the script, made in the person's files."""

from collections.abc import Mapping
from dataclasses import replace
from functools import partial
from pathlib import Path

from peaksight.cli.edited_copy import edited_copy
from peaksight.cli.kept_files import check_can_keep, copy_of, replace_file
from peaksight.cli.output import Output
from peaksight.cli.publish import write_file
from peaksight.cli.simulation_options import SimulationOptions
from peaksight.errors import PlanError, UsageError
from peaksight.planning.judgement import is_within
from peaksight.planning.outcomes import idle_lines, outcome_of
from peaksight.planning.situation import Situation
from peaksight.planning.writing import written
from peaksight.records import ScriptCommand
from peaksight.records.plan import Plan
from peaksight.records.plan_file import digest_of_script
from peaksight.records.proposals import FixReport, Outcome
from peaksight.units import format_bytes


def write_into_script(found: FixReport, situation: Situation, options: SimulationOptions, output: Output) -> FixReport:
    """Make those changes of the best plan which its diff has, after a simulation of the files as they are then.

    What is given back has a plan of the other changes, for the script as it is then. A file that git does not have is
    kept as `train.py.orig`.

    Raises:
        PlanError: as edited it needs more than a plan may, or sees other samples.
        UsageError: a file has changed meanwhile, cannot be written, or its copy has no place.
    """
    if found.plan is None or found.best is None or found.original.fits:
        return found
    told, files = written(situation, found.best.candidate)
    if not files.changed:
        output.warn("Nothing is written: the plan has no change that is an edit of the script.")
        return found
    before = {file: texts[0] for file, texts in files.changed.items()}
    after = {file: texts[1] for file, texts in files.changed.items()}
    rest = tuple(change for change, each in zip(found.plan.changes, told, strict=False) if not each.in_diff)
    plan = replace(found.plan, changes=rest)
    _check(_simulated(plan, after, situation, options, found.limit_bytes), found)
    _write(Path(situation.command.target).parent, before, after, output)
    for each in told:
        if not each.in_diff:
            output.warn(f"Not written: {each.words}")
    return replace(found, plan=replace(plan, sources=digest_of_script(situation.command.target)))


def _simulated(
    plan: Plan, after: Mapping[str, bytes], situation: Situation, options: SimulationOptions, limit_bytes: int
) -> Outcome:
    """The script with the files `after` their edits, and with `plan` put in from outside."""
    from peaksight.virtual_gpu import simulate_elsewhere

    script = Path(situation.command.target)
    with edited_copy(script.parent, after) as folder:
        command = _under(plan, replace(situation.command, target=str(folder / script.name)))
        captures = simulate_elsewhere(command, options.room, max_failures=0, changes=plan.changes, **options.of_each)
    if captures is None:
        return Outcome(error="has no answer")
    return outcome_of(captures, limit_bytes, idle_lines(captures))


def _under(plan: Plan, command: ScriptCommand) -> ScriptCommand:
    return command if plan.arguments is None else replace(command, args=plan.arguments)


def _check(outcome: Outcome, found: FixReport) -> None:
    assert found.best is not None
    expected = found.best.outcome
    if not outcome.error and is_within(outcome, found.limit_bytes) and outcome.samples == expected.samples:
        return
    came = outcome.error or (
        f"needs {format_bytes(outcome.reserved_bytes)} with {outcome.samples} samples in a step, the plan "
        f"{format_bytes(expected.reserved_bytes)} with {expected.samples}"
    )
    raise PlanError(
        f"Nothing is written: the script as edited {came}. Put the plan in from outside, with --apply plan.json and "
        "`python -m peaksight --plan plan.json`.",
        slug="write-otherwise",
    )


def _write(folder: Path, before: Mapping[str, bytes], after: Mapping[str, bytes], output: Output) -> None:
    """All checks come first, then copies, then edits."""
    for file, content in before.items():
        if (folder / file).read_bytes() != content:
            raise UsageError(
                f"Nothing is written: {folder / file} has changed since the search began. Start it again.",
                slug="write-changed",
            )
        check_can_keep(folder / file)
    for file, content in before.items():
        if (copy := copy_of(folder / file)) is not None:
            write_file(copy, partial(Path.write_bytes, data=content), output)
    for file, content in after.items():
        write_file(folder / file, partial(replace_file, content=content), output)
