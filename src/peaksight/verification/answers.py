"""When there is no answer: runs that trained nothing, that do not repeat themselves, or that are one and the same."""

from typing import Any

from peaksight.errors import VerificationError
from peaksight.records import ScriptCommand
from peaksight.verification.experiment import Experiment
from peaksight.verification.invariants import invariants, same_samples
from peaksight.verification.runs import Recording


def check_trained(recording: Recording, command: ScriptCommand) -> None:
    """VerificationError where no optimizer stepped, or none of them had a gradient."""
    name = " ".join(command.argv)
    if any(not run.steps for run in recording.ranks):
        raise VerificationError(
            f"No answer: `{name}` never stepped an optimizer. Give it arguments with which it trains.",
            slug="nothing-trained",
        )
    if not any(recording.tensors(run.rank, number)["gradient"] for run in recording.ranks for number in (1,)):
        raise VerificationError(
            f"No answer: no parameter of `{name}` had a gradient when its optimizer stepped. Call backward() before.",
            slug="no-gradient",
        )


def check_finite(recording: Recording, command: ScriptCommand) -> None:
    """VerificationError where gradients of the original are not finite: nothing can be held against them."""
    for rank in range(len(recording.ranks)):
        for step in range(1, len(recording.ranks[rank].steps) + 1):
            for name, gradient in recording.tensors(rank, step)["gradient"].items():
                if not gradient.isfinite().all():
                    raise VerificationError(
                        f"No answer: {name} has a gradient in step {step} of `{' '.join(command.argv)}`, the original, "
                        "that is not finite, so nothing can be compared with it. Verify against a script that trains.",
                        slug="not-finite",
                    )


def check_repeats(experiment: Experiment) -> None:
    """VerificationError where the original draws other samples each time, or does another number of steps."""
    ranks = experiment.original.ranks, experiment.repeated.ranks
    broken = next((each for each in invariants(*ranks) if not each.same), None)
    if broken or same_samples(*ranks) is False:
        what = f"{broken.name} in step {broken.step}" if broken else "samples"
        raise VerificationError(
            f"No answer: the original does not repeat itself: run twice, it has other {what}. "
            "Seed what it draws, and let it start each time as the first time.",
            slug="not-repeatable",
        )


def check_other_command(experiment: Experiment) -> None:
    """VerificationError where both are one command, before anything runs."""
    if experiment.original_command == experiment.changed_command and not experiment.changes:
        raise _same_command()


def check_other_code(experiment: Experiment) -> None:
    """VerificationError where both commands ran the same code with the same arguments."""
    same_code = experiment.original.ranks[0].sources == experiment.changed.ranks[0].sources
    if same_code and not experiment.changes and _how(experiment.original_command) == _how(experiment.changed_command):
        raise _same_command()


def check_changes(experiment: Experiment) -> None:
    """VerificationError where all that a plan changes did nothing: that both agree says nothing then."""
    if experiment.changes and {each.kind for each in experiment.changes} <= set(
        experiment.changed.ranks[0].without_effect
    ):
        raise VerificationError(
            "No answer: nothing that the plan changes did anything in this run, on this machine. "
            "Verify it with arguments, or on a card, where it does.",
            slug="plan-without-effect",
        )


def _same_command() -> VerificationError:
    return VerificationError(
        "No answer: both commands run the same code with the same arguments, so that they agree says nothing. "
        "Name the changed script, or the arguments that differ.",
        slug="same-command",
    )


def _how(command: ScriptCommand) -> tuple[Any, ...]:
    """Everything but the code; where modules are looked for is part of the code."""
    variables = {name: value for name, value in command.environment if name != "PYTHONPATH"}
    return command.args, variables, command.processes
