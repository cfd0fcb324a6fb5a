"""`peaksight verify`: do two scripts train the same model?"""

import shlex
import tempfile
from functools import partial
from pathlib import Path
from typing import Any

import click

from peaksight.cli.output import Output
from peaksight.cli.publish import STDOUT, Destinations, json_options, write_file
from peaksight.cli.revisions import command_against
from peaksight.cli.script_words import script_command
from peaksight.records import ScriptCommand
from peaksight.records.certificate import Certificate
from peaksight.reporting.certificate import render_certificate
from peaksight.reporting.json import certificate_to_json
from peaksight.verification.processes import TIMEOUT, start_process

_SAME, _NOT_THE_SAME = 0, 1


@click.command(context_settings={"allow_interspersed_args": False})
@click.option("--against", required=True, metavar="ORIGINAL", help="Script and arguments, or a git revision.")
@click.option("--with", "extra", default="", metavar="ARGS", help="Arguments that both get, as for a smaller size.")
@click.option("--steps", type=click.IntRange(min=1), default=8, show_default=True, help="Optimizer steps to compare.")
@click.option(
    "--timeout",
    type=click.FloatRange(min=0, min_open=True),
    default=TIMEOUT,
    show_default=True,
    metavar="SECONDS",
    help="How long each run may take before it is ended, without an answer.",
)
@json_options
@click.option("-m", "is_module", is_flag=True, help="SCRIPT is a module, as in `python -m`.")
@click.argument("words", nargs=-1, type=click.UNPROCESSED, metavar="SCRIPT [ARGS]...")
def verify(
    words: tuple[str, ...], against: str, extra: str, steps: int, timeout: float, is_module: bool, **options: Any
) -> int:
    """Run SCRIPT and the original that it is verified against, and say whether they train the same model.

    Both really run, a few times, from the same seeds, weights and batches. Compared are loss, every gradient, buffers,
    random states, updated parameters and optimizer state. The exit code is 0 if they are the same, bitwise or up to
    rounding, 1 if not, 2 without an answer.
    """
    more = tuple(shlex.split(extra))
    changed = script_command((*words, *more), is_module=is_module)
    to, output = Destinations(**options), Output()
    to.check()
    with tempfile.TemporaryDirectory(prefix="peaksight-verify-") as name:
        directory = Path(name)
        original = command_against(against, changed, more, directory / "revision")
        certificate = _certify(original, changed, steps, timeout, directory, output)
    _publish(certificate, to, output)
    return _SAME if certificate.same else _NOT_THE_SAME


def _certify(
    original: ScriptCommand, changed: ScriptCommand, steps: int, timeout: float, directory: Path, output: Output
) -> Certificate:
    """Run them; torch is imported here."""
    from peaksight.verification.certify import certify
    from peaksight.verification.plan import Plan
    from peaksight.verification.runs import record

    plan = Plan(
        original_command=original,
        changed_command=changed,
        directory=directory,
        steps=steps,
        record=partial(record, start=partial(start_process, timeout=timeout)),
        say=output.say,
    )
    return certify(plan)


def _publish(certificate: Certificate, to: Destinations, output: Output) -> None:
    text = certificate_to_json(certificate)
    if to.json == STDOUT:
        output.print(text)
        return
    output.draw(lambda console: render_certificate(certificate, console))
    if to.json:
        write_file(to.json, lambda path: path.write_text(text, encoding="utf-8"), output)
