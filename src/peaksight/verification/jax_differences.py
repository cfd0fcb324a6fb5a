"""What two JAX functions returned, held against each other: differences, what one lacks, the loss, what is updated."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import jax
import numpy as np
from jax.tree_util import tree_leaves

from peaksight.records.certificate import Invariant, Kind, LossDifference, TensorDifference
from peaksight.verification import outcome
from peaksight.verification.jax_runs import Run, Step, as_array
from peaksight.verification.measuring import Five, measured
from peaksight.verification.numpy_arrays import NUMPY, Array

# An output that is no further from an argument of its place is that argument, updated.
UPDATED = 0.5


@dataclass(frozen=True, slots=True, kw_only=True)
class JaxRuns:
    """All of one comparison; those in float64 only where a bit differs."""

    original: Run
    repeated: Run
    changed: Run
    exact: tuple[Run, Run] | None = None

    @property
    def num_steps(self) -> int:
        """How many calls every run has."""
        return min(len(run) for run in (self.original, self.repeated, self.changed))


def missing(original: Step, changed: Step) -> list[str]:
    """Sentences about what only one returns, or in another shape or type."""
    sentences = [f"only the original returns {name}" for name in original.arrays if name not in changed.arrays]
    sentences += [f"only the changed function returns {name}" for name in changed.arrays if name not in original.arrays]
    for name, array in original.arrays.items():
        other = changed.arrays.get(name, array)
        if (other.shape, other.dtype) != (array.shape, array.dtype):
            kinds = [f"{each.dtype}[{', '.join(map(str, each.shape))}]" for each in (array, other)]
            sentences.append(f"{name} is {kinds[0]} in the original, {kinds[1]} in the changed function")
    return sentences


def differences(runs: JaxRuns, args: tuple[Any, ...]) -> Iterator[TensorDifference]:
    """Every array that both return, in each step; `args` are those of the first."""
    for step in range(runs.num_steps):
        for kind, name, five in _arrays(runs, step, args):
            yield measured(kind, name, step + 1, 0, five, NUMPY)


def _arrays(runs: JaxRuns, step: int, args: tuple[Any, ...]) -> Iterator[tuple[Kind, str, Five[Array]]]:
    """The arrays of one step that both return in one shape."""
    kinds = _kinds(runs.original[0], args)
    one, again, other = (run[step].arrays for run in (runs.original, runs.repeated, runs.changed))
    exact = [run[step].arrays for run in runs.exact] if runs.exact else None
    for name, array in one.items():
        if name in other and other[name].shape == array.shape:
            pair = [NUMPY.wide(each[name]) for each in exact] if exact else [None, None]
            yield (
                kinds[name],
                name,
                Five(
                    original=array,
                    repeated=again[name],
                    changed=other[name],
                    original_exact=pair[0],
                    changed_exact=pair[1],
                ),
            )


def first_gradients(runs: JaxRuns, args: tuple[Any, ...]) -> dict[str, Five[Array]]:
    """What is judged as a gradient in the first step, and can have an error."""
    return {name: five for kind, name, five in _arrays(runs, 0, args) if kind == "gradient"}


def _kinds(step: Step, args: tuple[Any, ...]) -> dict[str, Kind]:
    """What each output is: an argument that was updated is a parameter, all else is judged as a gradient.

    Counters and the like are state.
    """
    arguments = [as_array(leaf).astype(np.float64) for leaf in tree_leaves(args) if _is_number(leaf)]
    return {name: _kind(array, arguments) for name, array in step.arrays.items()}


def _kind(array: Array, arguments: Sequence[Array]) -> Kind:
    if not NUMPY.resolution(array):
        return "state"
    return "parameter" if _is_update(array, arguments) else "gradient"


def _is_number(leaf: Any) -> bool:
    return hasattr(leaf, "dtype") and jax.dtypes.issubdtype(leaf.dtype, np.number)


def _is_update(array: Array, arguments: Sequence[Array]) -> bool:
    values = array.astype(np.float64)
    same = (each for each in arguments if each.shape == array.shape)
    return any(np.linalg.norm(values - each) <= UPDATED * np.linalg.norm(each) for each in same)


def loss(runs: JaxRuns) -> LossDifference | None:
    """The one number that is called a loss, or the only number that is returned, where it differs most."""
    first = runs.original[0].arrays
    numbers = [name for name, array in first.items() if not array.shape and NUMPY.resolution(array)]
    named = [name for name in numbers if "loss" in name] or numbers
    if len(named) != 1 or named[0] not in runs.changed[0].arrays:
        return None
    pairs = [
        [float(run[step].arrays[named[0]]) for run in (runs.original, runs.changed)] for step in range(runs.num_steps)
    ]
    step = max(range(len(pairs)), key=lambda each: abs(pairs[each][0] - pairs[each][1]))
    one, other = map(outcome.finite, pairs[step])
    return LossDifference(step=step + 1, original=one, changed=other)


def reference(found: Sequence[TensorDifference]) -> str:
    """What the runs in float64 say."""
    errors = [each.original_error / each.norm for each in found if each.original_error is not None and each.norm]
    exact = [each.exact_difference / each.norm for each in found if each.exact_difference is not None and each.norm]
    return (
        f"the original is up to {max(errors, default=0.0):.1e} from its float64 run; "
        f"the float64 runs are up to {max(exact, default=0.0):.1e} apart"
    )


def invariants(runs: JaxRuns) -> Iterator[Invariant]:
    """What of the state is updated: told beside the verdict, for a small update may be lost by rounding alone."""
    for number, (one, other) in enumerate(zip(runs.original, runs.changed, strict=False), start=1):
        if one.num_leaves and one.num_leaves == other.num_leaves:
            words = [f"{each.num_leaves - len(each.kept)} of {each.num_leaves}" for each in (one, other)]
            apart = sorted(one.kept ^ other.kept)
            named = f" ({apart[0]})" if apart else ""
            yield Invariant(
                name=f"leaves of the state that change{named}",
                original=words[0],
                changed=words[1],
                same=not apart,
                step=number,
                decides=False,
            )
