"""`peaksight run`: simulate a script and report its peak."""

import time
from contextlib import nullcontext
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import click

from peaksight.attribution import build_report
from peaksight.cli.output import Output, stdout_on_stderr
from peaksight.cli.script_words import script_command
from peaksight.cli.sizes import SIZE
from peaksight.errors import UsageError
from peaksight.gpus import Card, find_card, installed_card
from peaksight.records import Capture, Report, ScriptCommand, StepPeak
from peaksight.reporting import progress_line, report_to_json, stopped_line

FITS, DOES_NOT_FIT, NO_ANSWER = 0, 1, 2

_DEFAULT_CARD = "h100-80gb"
_STDOUT = Path("-")
_JSON = click.Path(dir_okay=False, allow_dash=True, resolve_path=True, path_type=Path)


@dataclass(frozen=True, slots=True, kw_only=True)
class RunOptions:
    """The options of `peaksight run`; sizes in bytes, None where the option was not given."""

    gpu: str | None = None
    memory: int | None = None
    reserved_by_others: int = 0
    torch: str | None = None
    steps: int | None = None
    json: Path | None = None
    force: bool = False

    @property
    def card(self) -> Card:
        """The card to simulate: the named one, else this machine's, else an H100; `--memory` replaces its total."""
        card = find_card(self.gpu) if self.gpu else installed_card() or find_card(_DEFAULT_CARD)
        return card if self.memory is None else replace(card, total_bytes=self.memory)


@click.command(context_settings={"allow_interspersed_args": False})
@click.option("--gpu", metavar="NAME", help="The card, see `peaksight gpus`. Default: this machine's, else h100-80gb.")
@click.option("--memory", type=SIZE, metavar="SIZE", help="The card's total memory, as in 24GiB. Default: its own.")
@click.option("--reserved-by-others", type=SIZE, metavar="SIZE", default=0, help="What other processes hold of it.")
@click.option("--torch", metavar="VERSION", help="Take the device rules of this build, as in 2.11+cu130.")
@click.option("--steps", type=click.IntRange(min=1), metavar="N", help="Stop after N steps. Default: once steady.")
@click.option("--json", type=_JSON, metavar="FILE", help="Write the report as JSON; - is stdout and nothing else.")
@click.option("--force", is_flag=True, help="Overwrite FILE if it exists.")
@click.option("-m", "is_module", is_flag=True, help="SCRIPT is a module, as in `python -m`.")
@click.argument("words", nargs=-1, type=click.UNPROCESSED, metavar="SCRIPT [ARGS]...")
def run(words: tuple[str, ...], is_module: bool, **options: Any) -> int:
    """Simulate SCRIPT on a virtual GPU and report its memory peak.

    Everything after SCRIPT belongs to the script; `python` in front of it is understood. The exit code is 0 if it
    fits, 1 if it does not, 2 without an answer. "Likely" counts as yes.
    """
    return _run(script_command(words, is_module=is_module), RunOptions(**options))


def _run(command: ScriptCommand, options: RunOptions) -> int:
    card, output = options.card, Output()
    progress = _Progress(output)
    _refuse_overwrite(options)
    with stdout_on_stderr() if options.json == _STDOUT else nullcontext():
        capture = _simulate(command, card, options, progress)
    report = build_report(capture, card, reserved_by_others_bytes=options.reserved_by_others)
    _publish(report, options, output)
    if _exit_code(report) == NO_ANSWER:
        output.say(f"{stopped_line(report, progress.num_steps)}.")
    return _exit_code(report)


class _Progress:
    """Says each finished step, and counts them."""

    def __init__(self, output: Output) -> None:
        self.num_steps = 0
        self._output = output
        self._started = time.perf_counter()

    def __call__(self, step: StepPeak) -> None:
        self.num_steps += 1
        self._output.say(progress_line(step, time.perf_counter() - self._started))


def _refuse_overwrite(options: RunOptions) -> None:
    if options.json and options.json.exists() and not options.force:
        raise UsageError(
            f"{options.json} exists: choose another file for --json, or pass --force to overwrite it.",
            slug="file-exists",
        )


def _simulate(command: ScriptCommand, card: Card, options: RunOptions, progress: _Progress) -> Capture:
    """Run the script; torch is imported here, for it takes seconds that `--help` need not wait for."""
    from peaksight.virtual_gpu import simulate

    return simulate(command, card=card, device_rules=options.torch, max_steps=options.steps, on_step=progress)


def _publish(report: Report, options: RunOptions, output: Output) -> None:
    """Show the report unless the script failed, and write the JSON that was asked for."""
    if options.json == _STDOUT:
        output.print(report_to_json(report))
    elif report.finished != "failed":
        output.show(report)
    if options.json and options.json != _STDOUT:
        options.json.write_text(report_to_json(report), encoding="utf-8")
        output.say(f"Wrote {options.json}")


def _exit_code(report: Report) -> int:
    """A failed script gives no answer; an interrupted run gives one only if it had already failed to fit."""
    if report.finished == "failed":
        return NO_ANSWER
    if report.oom is not None:
        return DOES_NOT_FIT
    return NO_ANSWER if report.finished == "interrupted" else FITS
