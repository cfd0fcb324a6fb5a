"""The certificate of two JAX functions: both run for real, on the same numbers, and in float64 as the reference."""

import time
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

import jax

from peaksight.jax.interpreter import RandomBits
from peaksight.jax.tracing import cannot_trace
from peaksight.records.certificate import Certificate, Invariant, Judged, TensorDifference, Verdict
from peaksight.verification import outcome
from peaksight.verification.jax_differences import (
    JaxRuns,
    differences,
    first_gradients,
    invariants,
    loss,
    missing,
    reference,
)
from peaksight.verification.jax_runs import Function, arrays_only, concrete, draws, of_arrays, run_as_it_is, run_exactly
from peaksight.verification.judging import is_bitwise, judge, still_different
from peaksight.verification.numpy_arrays import NUMPY
from peaksight.verification.sensitivity import caught_by, smallest_caught

SCHEMA = "peaksight.certificate/1"
NUM_STEPS = 2


@dataclass(frozen=True, slots=True, kw_only=True)
class _Decision:
    verdict: Verdict
    reasons: tuple[str, ...]
    noise: str = ""


def verify_functions(original: Function, changed: Function, *args: Any, steps: int = NUM_STEPS) -> Certificate:
    """Whether `changed` computes what `original` does, on `args`.

    Arguments may be shapes (`jax.ShapeDtypeStruct`): these get seeded numbers between 0 and 0.1. Where what the
    functions return, or the first thing that they return, has the structure and the shapes of the first argument, it is
    handed back as that, for `steps` steps in all: a training state. What is no number in the arguments, as the
    activations of a module of Equinox, is the same in every call. Arguments that the functions change in place count
    as returned.
    """
    started = time.perf_counter()
    names = _name(original), _name(changed)
    args = concrete(args)
    original, changed = _traceable(original, args), _traceable(changed, args)
    args = arrays_only(args)
    first, again, other = (run_as_it_is(fn, args, steps) for fn in (original, original, changed))
    runs = JaxRuns(original=first, repeated=again, changed=other)
    only_one = missing(first[0], other[0])
    if only_one or not is_bitwise(list(differences(runs, args))):
        exact_runs = run_exactly(original, args, steps), run_exactly(changed, args, steps)
        runs = JaxRuns(original=first, repeated=again, changed=other, exact=exact_runs)
    found = list(differences(runs, args))
    facts = tuple(invariants(runs))
    decision = _told_with(facts, _decide(runs, found, only_one, (original, changed), args))
    caught = smallest_caught(first_gradients(runs, args), found, caught_by(decision.verdict), NUMPY)
    return Certificate(
        schema=SCHEMA,
        original=names[:1],
        changed=names[1:],
        verdict=decision.verdict,
        same=decision.verdict in ("bitwise", "rounding"),
        noise=decision.noise,
        reasons=decision.reasons,
        notes=(),
        worst=outcome.worst(judge(found)),
        loss=loss(runs),
        blocks=outcome.blocks(found, caught),
        smallest_caught=outcome.largest(caught),
        noise_floor=max((each.repeated / each.norm for each in found if each.norm), default=0.0),
        invariants=facts,
        mechanisms=(),
        steps=runs.num_steps,
        ranks=1,
        weights="the same arguments",
        batches="the same arguments in every step",
        reference=reference(found) if runs.exact else "not needed: every bit is the same",
        device=jax.devices()[0].platform,
        torch=f"jax {jax.__version__}",
        seconds=round(time.perf_counter() - started, 1),
    )


def _traceable(fn: Function, args: tuple[Any, ...]) -> Function:
    """`fn` as a function of the arrays in `args`; UnsupportedError where JAX cannot trace it."""
    called = of_arrays(fn, args)
    try:
        jax.eval_shape(called, *arrays_only(args))
    except Exception as error:
        raise cannot_trace(fn, error) from error
    return called


def _decide(
    runs: JaxRuns,
    found: Sequence[TensorDifference],
    only_one: Sequence[str],
    functions: tuple[Function, Function],
    args: tuple[Any, ...],
) -> _Decision:
    """As the certificate of scripts: some bits differ by rounding, by chance, or more."""
    if only_one:
        return _Decision(verdict="different", reasons=tuple(only_one))
    judged = judge(found)
    if all(each.tensor.bitwise for each in judged):
        return _bitwise(runs)
    excess = max(each.excess for each in judged)
    if excess <= 1:
        reason = f"no array differs by more than the original's own rounding: at most {excess:.1g} of it"
        return _Decision(verdict="rounding", reasons=(reason,))
    if all(each.exact_excess <= 1 for each in judged):
        return _Decision(verdict="noise", noise="coarser rounding", reasons=outcome.rounded_more_coarsely(judged))
    return _by_bits(found, judged, functions, args)


def _bitwise(runs: JaxRuns) -> _Decision:
    if all(one.keys == other.keys for one, other in zip(runs.original, runs.changed, strict=False)):
        return _Decision(verdict="bitwise", reasons=("every returned array has the same bits",))
    reason = "every returned array has the same bits, but the next random numbers are others"
    return _Decision(verdict="noise", reasons=(reason,), noise="later random numbers")


def _by_bits(
    found: Sequence[TensorDifference],
    judged: Sequence[Judged],
    functions: tuple[Function, Function],
    args: tuple[Any, ...],
) -> _Decision:
    """Whether it is the random numbers alone: with the same bits from every key both compute the same."""
    beyond = outcome.beyond(judged)
    if not all(draws(fn, args) for fn in functions):
        return _Decision(verdict="different", reasons=(beyond,))
    one, other = (run_exactly(fn, args, 1, RandomBits()) for fn in functions)
    name = still_different(differences(JaxRuns(original=one, repeated=one, changed=other), args), found)
    if name is not None:
        reason = f"with the same random numbers, {name} still differs"
        return _Decision(verdict="different", reasons=(beyond, reason))
    reason = "in float64, with the same bits from every random key, both compute the same"
    return _Decision(verdict="noise", noise="other random numbers", reasons=(reason,))


def _told_with(facts: Sequence[Invariant], decision: _Decision) -> _Decision:
    """What is updated in one of the two only, among the reasons for what is different anyway."""
    broken = [outcome.broken(each) for each in facts if not each.same]
    if not broken or decision.verdict != "different":
        return decision
    return replace(decision, reasons=(*decision.reasons, broken[0]))


def _name(fn: Function) -> str:
    return getattr(fn, "__qualname__", None) or type(fn).__name__
