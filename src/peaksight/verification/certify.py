"""Runs both scripts as often as it takes, and says whether they train the same model."""

import time
from collections.abc import Sequence
from dataclasses import dataclass

import torch

from peaksight.records.certificate import Certificate, Invariant, TensorDifference, Verdict
from peaksight.verification import answers, outcome, summary
from peaksight.verification.distances import TORCH, differences, first_gradients
from peaksight.verification.experiment import Experiment
from peaksight.verification.invariants import draws, invariants, mechanisms
from peaksight.verification.judging import is_bitwise, judge
from peaksight.verification.noise import mask_noise, rounding_noise
from peaksight.verification.sensitivity import caught_by, smallest_caught

SCHEMA = "peaksight.certificate/1"


@dataclass(frozen=True, slots=True, kw_only=True)
class Decision:
    """The verdict and what decided it; `noise` is the kind of a verdict of noise."""

    verdict: Verdict
    reasons: tuple[str, ...]
    noise: str = ""


def certify(experiment: Experiment) -> Certificate:
    """The certificate of `experiment`.

    Raises:
        ScriptError: a run failed.
        VerificationError: there is no answer, for one of the reasons in `answers`.
    """
    started = time.perf_counter()
    _check(experiment)
    facts = tuple(invariants(experiment.original.ranks, experiment.changed.ranks))
    missing = summary.missing_tensors(experiment)
    runs = experiment.runs()
    found = list(differences(runs))
    if is_bitwise(found) and not missing:
        decision = _bitwise(experiment)
    else:
        runs = experiment.exact_runs()
        found = list(differences(runs))
        decision = _decide(experiment, found, missing)
    decision = _held_to(facts, decision)
    caught = smallest_caught(first_gradients(runs), found, caught_by(decision.verdict), TORCH)
    return Certificate(
        schema=SCHEMA,
        original=experiment.original_command.argv,
        changed=experiment.changed_command.argv,
        verdict=decision.verdict,
        same=decision.verdict in ("bitwise", "rounding"),
        noise=decision.noise,
        reasons=decision.reasons,
        notes=summary.notes(experiment),
        worst=outcome.worst(judge(found)),
        loss=summary.loss(experiment),
        blocks=outcome.blocks(found, caught),
        smallest_caught=outcome.largest(caught),
        noise_floor=summary.noise_floor(experiment),
        invariants=facts,
        mechanisms=mechanisms(experiment.original.ranks, experiment.changed.ranks),
        steps=runs.num_steps,
        ranks=runs.num_ranks,
        weights=summary.weights(experiment),
        batches=summary.batches(experiment),
        reference=summary.reference(experiment, found),
        device=experiment.original.ranks[0].device,
        torch=str(torch.__version__),
        seconds=round(time.perf_counter() - started, 1),
    )


def _check(experiment: Experiment) -> None:
    """Raise where no certificate can be given."""
    answers.check_other_command(experiment)
    answers.check_trained(experiment.original, experiment.original_command)
    answers.check_finite(experiment.original, experiment.original_command)
    answers.check_trained(experiment.changed, experiment.changed_command)
    answers.check_other_code(experiment)
    answers.check_changes(experiment)
    answers.check_repeats(experiment)


def _bitwise(experiment: Experiment) -> Decision:
    """Every tensor has the same bits; the generators have to be where they were too, if anything is drawn.

    What a loss adds up to is no tensor that trains: another order of its terms is told, and decides nothing.
    """
    ends = [[run.steps[-1].random_state for run in each.ranks] for each in (experiment.original, experiment.changed)]
    if ends[0] == ends[1] or not (draws(experiment.original.ranks) or draws(experiment.changed.ranks)):
        reasons = ("every recorded tensor has the same bits", *summary.losses_apart(experiment))
        return Decision(verdict="bitwise", reasons=reasons)
    reason = "every recorded tensor has the same bits, but the next random numbers are others"
    return Decision(verdict="noise", reasons=(reason,), noise="later random numbers")


def _decide(experiment: Experiment, found: Sequence[TensorDifference], missing: Sequence[str]) -> Decision:
    """Some bits differ: by rounding, by chance, or more."""
    if missing:
        return Decision(verdict="different", reasons=tuple(missing))
    judged = judge(found)
    if all(each.excess <= 1 for each in judged):
        return Decision(verdict="rounding", reasons=(summary.within(experiment, judged),))
    if experiment.exact is not None and all(each.exact_excess <= 1 for each in judged):
        noise = rounding_noise(experiment, judged)
    else:
        noise = mask_noise(experiment, found)
    if noise.found:
        return Decision(verdict="noise", reasons=noise.reasons, noise=noise.found)
    return Decision(verdict="different", reasons=(outcome.beyond(judged), *noise.reasons))


def _held_to(facts: Sequence[Invariant], decision: Decision) -> Decision:
    """Refused, whatever the tensors say, where the runs are not of the same shape."""
    broken = [each for each in facts if not each.same and each.decides]
    if not broken:
        return decision
    reasons = tuple(outcome.broken(each) for each in outcome.first_of_each(broken))
    own = decision.reasons if decision.verdict == "different" else ()
    return Decision(verdict="different", reasons=reasons + own)
