"""`peaksight run`: simulate a script and report its peak."""

from contextlib import AbstractContextManager, nullcontext
from pathlib import Path
from typing import Any

import click

from peaksight.attribution import Disagreement, disagreement, in_deadlock
from peaksight.cli.appended_plan import append_plan, check_alone
from peaksight.cli.completion import files
from peaksight.cli.exports import Run, export_options
from peaksight.cli.output import Output, quiet_option, stdout_nowhere, stdout_on_stderr
from peaksight.cli.plans import plan_option, under_plan
from peaksight.cli.progress import Progress
from peaksight.cli.publish import FILE, Destinations, all_option, destination_options, publish, write_file
from peaksight.cli.script_words import script_command
from peaksight.cli.simulated import Simulations
from peaksight.cli.simulation_options import SimulationOptions, simulation_options
from peaksight.diagnosis.diagnose import explained_report
from peaksight.errors import ScriptError
from peaksight.gpus import Room
from peaksight.records import WITHOUT_ANSWER, Capture, Report, ScriptCommand
from peaksight.records.capture_file import write_capture_file
from peaksight.records.plan import Change
from peaksight.reporting import stopped_line
from peaksight.virtual_gpu.garbage import collect_rarely

FITS, DOES_NOT_FIT, NO_ANSWER = 0, 1, 2


@click.command(
    context_settings={"allow_interspersed_args": False},
    short_help="Simulate a script on a virtual GPU: does it fit, and what holds the peak?",
)
@simulation_options
@plan_option
@click.option("--fix", is_flag=True, help="Where it does not fit, search for the best plan, as `peaksight fix`.")
@click.option("--save", type=FILE, metavar="FILE", help="Save the run, for `peaksight report FILE`.")
@destination_options
@all_option
@export_options
@quiet_option
@click.option("-m", "is_module", is_flag=True, help="SCRIPT is a module, as in `python -m`.")
@click.argument("words", nargs=-1, type=click.UNPROCESSED, shell_complete=files, metavar="SCRIPT [ARGS]...")
def run(words: tuple[str, ...], is_module: bool, plan: Path | None, fix: bool, **options: Any) -> int:
    """Simulate SCRIPT on a virtual GPU and report its memory peak.

    Everything after SCRIPT belongs to the script; `python`, variables, `uv run`, `torchrun` and `accelerate launch` in
    front of it are understood. The exit code is 0 if it fits, 1 if it does not, 2 without an answer. "Likely" counts as
    yes.
    """
    simulation = SimulationOptions.taken_from(options)
    if fix:
        check_alone(plan)
    command, found = under_plan(simulation.launched(script_command(words, is_module=is_module)), plan)
    output = Output(quiet=options.pop("quiet"))
    to = Destinations(**options)
    code = _run(command, simulation, to, output, found.changes if found else ())
    if fix and code == DOES_NOT_FIT:
        append_plan(command, simulation, to, output)
    return code


def _run(
    command: ScriptCommand,
    options: SimulationOptions,
    to: Destinations,
    output: Output,
    changes: tuple[Change, ...],
) -> int:
    room, progress = options.room, Progress(output)
    to.check()
    with _prints(output, to):
        captures = _simulate(command, room, options, progress, changes)
    clash = None if any(capture.fatal is not None for capture in captures) else disagreement(captures)
    captures = captures if clash is None else in_deadlock(captures)
    report = explained_report(captures, room)
    for kind in captures[-1].without_effect:
        output.warn(f"of the plan, {kind} changed nothing in this run")
    publish(Run(report, captures, room), to, output, shown=report.finished != "failed" or report.oom is not None)
    if to.save:
        write_file(to.save, lambda path: write_capture_file(path, captures, room), output)
    if clash is not None:
        raise _ranks_disagree(clash)
    if report.finished == "untrained" and report.oom is None:
        raise _untrained()
    if _exit_code(report) == NO_ANSWER:
        output.warn(f"{stopped_line(report, progress.num_steps)}.")
    return _exit_code(report)


def _prints(output: Output, to: Destinations) -> AbstractContextManager[None]:
    """Where what the script prints goes: not between the lines of JSON, nor before an answer that is to stand alone."""
    if output.quiet:
        return stdout_nowhere()
    return stdout_on_stderr() if to.take_stdout else nullcontext()


def _simulate(
    command: ScriptCommand,
    room: Room,
    options: SimulationOptions,
    progress: Progress,
    changes: tuple[Change, ...],
) -> tuple[Capture, ...]:
    """Run the script, and again without a limit where a failure ended it.

    torch is imported here, for it takes seconds that `--help` need not wait for.
    """
    collect_rarely()
    from peaksight.cli.frameworks import trains_under_jax

    if trains_under_jax(command):
        from peaksight.cli.jax_runs import simulate_jax

        return simulate_jax(
            command,
            room,
            num_gpus=options.gpus,
            max_steps=options.steps,
            on_step=progress,
            on_compile=progress.compiling,
            changes=changes,
        )
    from peaksight.virtual_gpu import simulate, simulate_elsewhere
    from peaksight.virtual_gpu.ranks.told import telling

    how: dict[str, Any] = {
        "num_gpus": options.gpus,
        "device_rules": options.torch,
        "max_steps": options.steps,
        "worst_batch": options.worst_batch,
        "changes": changes,
    }
    with telling() as told:
        return Simulations(
            command=command,
            room=room,
            ranks=options.rank,
            here=simulate,
            elsewhere=simulate_elsewhere,
            how=how | {"told": told},
            progress=progress,
        ).captures()


def _ranks_disagree(clash: Disagreement) -> ScriptError:
    return ScriptError(
        f"No answer: the ranks would wait for each other for ever or mix up their data, for {clash}. "
        "Let every rank of a group call the same collectives, alike, in the same order.",
        slug="ranks-disagree",
    )


def _untrained() -> ScriptError:
    return ScriptError(
        "No answer: the script never stepped an optimizer, so nothing says that its peak is that of training. "
        "Give it arguments with which it trains, or --steps 0 if it is not meant to.",
        slug="untrained",
    )


def _exit_code(report: Report) -> int:
    """A run that did not get to the end of training gives an answer only if it had already failed to fit."""
    if report.oom is not None:
        return DOES_NOT_FIT
    return NO_ANSWER if report.finished in WITHOUT_ANSWER else FITS
