"""`peaksight verify`: do two scripts train the same model?"""

import shlex
import tempfile
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any

import click

from peaksight.cli.certifying import STEPS, certify_commands
from peaksight.cli.completion import files
from peaksight.cli.frameworks import trains_under_jax
from peaksight.cli.output import Output, quiet_option
from peaksight.cli.pages import certificate_page
from peaksight.cli.plans import plan_option, under_plan
from peaksight.cli.publish import Answer, Destinations, destination_options, publish_answer
from peaksight.cli.revisions import command_against
from peaksight.cli.script_words import script_command
from peaksight.errors import UnsupportedError, UsageError
from peaksight.records.certificate import Certificate
from peaksight.reporting.certificate import render_certificate
from peaksight.reporting.json import certificate_to_json
from peaksight.verification.processes import TIMEOUT

_SAME, _NOT_THE_SAME = 0, 1


@click.command(
    context_settings={"allow_interspersed_args": False}, short_help="Say whether two scripts train the same model."
)
@click.option("--against", metavar="ORIGINAL", help="Script and arguments, or a git revision.")
@plan_option
@click.option("--with", "extra", default="", metavar="ARGS", help="Arguments that both get, as for a smaller size.")
@click.option(
    "--steps",
    type=click.IntRange(min=1),
    metavar="N",
    default=STEPS,
    show_default=True,
    help="Optimizer steps to compare.",
)
@click.option(
    "--timeout",
    type=click.FloatRange(min=0, min_open=True),
    default=TIMEOUT,
    show_default=True,
    metavar="SECONDS",
    help="How long each run may take before it is ended, without an answer.",
)
@destination_options
@quiet_option
@click.option("-m", "is_module", is_flag=True, help="SCRIPT is a module, as in `python -m`.")
@click.argument("words", nargs=-1, type=click.UNPROCESSED, shell_complete=files, metavar="SCRIPT [ARGS]...")
def verify(
    words: tuple[str, ...],
    against: str | None,
    plan: Path | None,
    extra: str,
    steps: int,
    timeout: float,
    is_module: bool,
    **options: Any,
) -> int:
    """Run SCRIPT and the original that it is verified against, and say whether they train the same model.

    With --plan, SCRIPT as it is, is the original, and SCRIPT under the plan is verified. Both really run, a few times,
    from the same seeds, weights and batches. Compared are loss, every gradient, buffers, random states, updated
    parameters and optimizer state. The exit code is 0 if they are the same, bitwise or up to rounding, 1 if not, 2
    without an answer.
    """
    more = tuple(shlex.split(extra))
    command = script_command(words, is_module=is_module)
    changed, read = under_plan(command, plan)
    command, changed = (replace(each, args=(*each.args, *more)) for each in (command, changed))
    output = Output(quiet=options.pop("quiet"))
    to = Destinations(**options)
    to.check()
    if against is None and plan is None:
        raise UsageError(
            "Nothing to verify against: name the original with --against, or a plan with --plan.", slug="two-runs"
        )
    if trains_under_jax(command):
        raise UnsupportedError(
            "Can't verify a script under JAX: its steps are functions that return what they train. Give "
            "`peaksight.jax.verify` the step as it was and as it is.",
            slug="jax-verify",
        )
    with tempfile.TemporaryDirectory(prefix="peaksight-verify-") as name:
        directory = Path(name)
        original = command_against(against, changed, more, directory / "revision") if against else command
        changes = read.changes if read else ()
        certificate = certify_commands(original, changed, changes, steps, timeout, directory, output)
    _publish(certificate, to, output)
    return _SAME if certificate.same else _NOT_THE_SAME


def _publish(certificate: Certificate, to: Destinations, output: Output) -> None:
    answer = Answer(
        render=partial(render_certificate, certificate),
        json=partial(certificate_to_json, certificate),
        page=partial(certificate_page, certificate),
    )
    publish_answer(answer, to, output)
