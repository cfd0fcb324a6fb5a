"""What `verify` and `fix --certify` share: the runs that a certificate takes."""

import tempfile
from dataclasses import replace
from functools import partial
from pathlib import Path

from peaksight.cli.output import Output
from peaksight.extras import check_torch
from peaksight.records import ScriptCommand
from peaksight.records.certificate import Certificate
from peaksight.records.findings import Effect
from peaksight.records.plan import Change, Plan, is_as_strict
from peaksight.verification.processes import TIMEOUT, start_process

STEPS = 8


def certify_commands(
    original: ScriptCommand,
    changed: ScriptCommand,
    changes: tuple[Change, ...],
    steps: int,
    timeout: float,
    directory: Path,
    output: Output,
) -> Certificate:
    """Run both, `changed` under the `changes` of a plan, and compare them; torch is imported here."""
    check_torch()
    from peaksight.verification.certify import certify
    from peaksight.verification.experiment import Experiment
    from peaksight.verification.runs import record

    experiment = Experiment(
        original_command=original,
        changed_command=changed,
        directory=directory,
        steps=steps,
        record=partial(record, start=partial(start_process, timeout=timeout)),
        say=output.progress,
        changes=changes,
    )
    return certify(experiment)


def certify_plan(
    plan: Plan, command: ScriptCommand, more: tuple[str, ...], steps: int | None, output: Output
) -> Certificate:
    """`command` as it is against `command` under `plan`, both with the arguments `more`."""
    arguments = command.args if plan.arguments is None else plan.arguments
    original, changed = (replace(command, args=(*args, *more)) for args in (command.args, arguments))
    with tempfile.TemporaryDirectory(prefix="peaksight-verify-") as name:
        return certify_commands(original, changed, plan.changes, steps or STEPS, TIMEOUT, Path(name), output)


def keeps_its_class(certificate: Certificate, plan: Plan) -> bool:
    """Whether the training differs by no more than `plan` says."""
    verdict = Effect.MODEL if certificate.verdict == "different" else Effect(certificate.verdict)
    return is_as_strict(verdict, plan.effect)
