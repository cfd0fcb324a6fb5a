"""`fix --write`: those changes of a plan that are edits of the script, made in the person's files."""

from collections.abc import Collection, Mapping, Sequence
from dataclasses import replace
from functools import partial
from pathlib import Path

from peaksight.cli.edited_copy import edited_copy
from peaksight.cli.kept_files import check_can_keep, copy_of, replace_file
from peaksight.cli.output import Output
from peaksight.cli.publish import write_file
from peaksight.cli.simulation_options import SimulationOptions
from peaksight.errors import PlanError, UsageError
from peaksight.planning.edited_files import EditedFiles
from peaksight.planning.judgement import is_within
from peaksight.planning.outcomes import idle_lines, outcome_of
from peaksight.planning.situation import Situation
from peaksight.planning.writing import written
from peaksight.records import ScriptCommand
from peaksight.records.plan import Plan
from peaksight.records.plan_file import digest_of_script
from peaksight.records.proposals import FixReport, Outcome, Written
from peaksight.units import format_bytes


def check_edits(found: FixReport, situation: Situation, options: SimulationOptions, output: Output) -> None:
    """Simulate the files as the edits of the best plan leave them, with its other changes put in from outside.

    Raises:
        PlanError: as edited the script needs more than a plan may, or sees other samples.
    """
    if found.plan is None or found.best is None or not found.diff:
        return
    told, files = written(situation, found.best.candidate)
    after = {file: texts[1] for file, texts in files.changed.items()}
    output.progress("simulating the script as edited")
    outcome = _simulated(_rest(found.plan, told, files), after, situation, options, found.limit_bytes)
    _check(outcome, found)
    output.say(f"As edited, the script needs {format_bytes(outcome.reserved_bytes)} (simulated).")


def write_into_script(found: FixReport, situation: Situation, output: Output) -> FixReport:
    """Make those changes of the best plan which its diff has in the person's files.

    What is given back has a plan of the other changes, for the script as it is then. A file that git does not have is
    kept as `train.py.orig`.

    Raises:
        UsageError: a file has changed meanwhile, cannot be written, or its copy has no place.
    """
    if found.plan is None or found.best is None or found.original.fits:
        return found
    if not found.diff:
        output.warn("Nothing is written: the plan has no change that is an edit of the script.")
        return found
    told, files = written(situation, found.best.candidate)
    _write(Path(situation.command.target).parent, files.changed, output)
    for each in told:
        if not each.in_diff:
            output.warn(f"Not written: {each.words}")
    sources = digest_of_script(situation.command.target)
    return replace(found, plan=replace(_rest(found.plan, told, files), sources=sources))


def _rest(plan: Plan, told: Sequence[Written], files: EditedFiles) -> Plan:
    """`plan` with what is not in its diff, and the arguments that the edits of `files` give."""
    changes = tuple(c for c, each in zip(plan.changes, told, strict=False) if not each.in_diff)
    return replace(plan, changes=changes, arguments=plan.arguments or files.arguments)


def _simulated(
    plan: Plan, after: Mapping[str, bytes], situation: Situation, options: SimulationOptions, limit_bytes: int
) -> Outcome:
    """The script with the files `after` their edits, and with `plan` put in from outside."""
    from peaksight.virtual_gpu import simulate_elsewhere

    script = Path(situation.command.target)
    with edited_copy(script.parent, after) as folder:
        command = _under(plan, replace(situation.command, target=str(folder / script.name)))
        command = replace(
            command, args=tuple(_moved(word, script.resolve().parent, folder, after) for word in command.args)
        )
        captures = simulate_elsewhere(command, options.room, max_failures=0, changes=plan.changes, **options.of_each)
    if captures is None:
        return Outcome(error="has no answer")
    return outcome_of(captures, limit_bytes, idle_lines(captures))


def _moved(word: str, folder: Path, there: Path, after: Collection[str]) -> str:
    """An argument that names an edited file (`--config=config.yaml`), with the file that is simulated."""
    begin, equal, name = word.rpartition("=")
    files = (file for file in after if name and Path(name).resolve() == folder / file)
    return next((f"{begin}{equal}{there / file}" for file in files), word)


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
        f"The script is not edited: as edited it {came}. Put the plan in from outside, with --apply plan.json and "
        "`python -m peaksight --plan plan.json`.",
        slug="write-otherwise",
    )


def _write(folder: Path, changed: Mapping[str, tuple[bytes, bytes]], output: Output) -> None:
    """All checks come first, then copies, then edits."""
    for file, (before, _) in changed.items():
        if (folder / file).read_bytes() != before:
            raise UsageError(
                f"Nothing is written: {folder / file} has changed since the search began. Start it again.",
                slug="write-changed",
            )
        check_can_keep(folder / file)
    for file, (before, _) in changed.items():
        if (copy := copy_of(folder / file)) is not None:
            write_file(copy, partial(Path.write_bytes, data=before), output)
    for file, (_, after) in changed.items():
        write_file(folder / file, partial(replace_file, content=after), output)
