"""The certificate of two JAX functions: both run for real, on the same numbers, and in float64 as the reference."""

import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any

import jax
import numpy as np
from jax.tree_util import keystr, tree_flatten_with_path, tree_leaves, tree_map, tree_structure

from peaksight.records.certificate import Certificate, Judged, Kind, TensorDifference, Verdict
from peaksight.verification import outcome
from peaksight.verification.judging import is_bitwise, judge

SCHEMA = "peaksight.certificate/1"
NUM_STEPS = 2
# An output that is no further from an argument of its place is that argument, updated.
UPDATED = 0.5

Array = np.ndarray[Any, Any]
Outputs = dict[str, Array]
Function = Callable[..., Any]


def verify_functions(original: Function, changed: Function, *args: Any, steps: int = NUM_STEPS) -> Certificate:
    """Whether `changed` computes what `original` does, on `args`.

    Arguments may be shapes (`jax.ShapeDtypeStruct`): these get seeded numbers between 0 and 0.1. Where what the
    functions return, or the first thing that they return, has the structure and the shapes of the first argument, it is
    handed back as that, for `steps` steps in all: a training state.
    """
    started = time.perf_counter()
    args = tuple(_concrete(args))
    runs = [_run(fn, args, steps) for fn in (original, original, changed)]
    missing = _missing(runs[0][0], runs[2][0])
    exact: list[list[Outputs]] | None = None
    found = list(_differences(runs, None, args))
    if missing or not is_bitwise(found):
        exact = [_run(fn, args, steps, exact=True) for fn in (original, changed)]
        found = list(_differences(runs, exact, args))
    judged = judge(found)
    verdict, reasons = _decide(judged, missing)
    return Certificate(
        schema=SCHEMA,
        original=(_name(original),),
        changed=(_name(changed),),
        verdict=verdict,
        same=verdict in ("bitwise", "rounding"),
        noise="",
        reasons=reasons,
        notes=(),
        worst=outcome.worst(judged),
        loss=None,
        blocks=outcome.blocks(found, {}),
        smallest_caught=None,
        noise_floor=max((each.repeated / each.norm for each in found if each.norm), default=0.0),
        invariants=(),
        mechanisms=(),
        steps=min(len(run) for run in runs),
        ranks=1,
        weights="the same arguments",
        batches="the same arguments in every step",
        reference=_reference(found) if exact else "not needed: every bit is the same",
        device=jax.devices()[0].platform,
        torch=f"jax {jax.__version__}",
        seconds=round(time.perf_counter() - started, 1),
    )


def _decide(judged: Sequence[Judged], missing: Sequence[str]) -> tuple[Verdict, tuple[str, ...]]:
    if missing:
        return "different", tuple(missing)
    if all(each.tensor.bitwise for each in judged):
        return "bitwise", ("every returned array has the same bits",)
    excess = max(each.excess for each in judged)
    if excess <= 1:
        return "rounding", (f"no array differs by more than the original's own rounding: at most {excess:.1g} of it",)
    return "different", (outcome.beyond(judged),)


def _run(fn: Function, args: tuple[Any, ...], steps: int, *, exact: bool = False) -> list[Outputs]:
    """What `fn` returns in each step; with `exact` everything is in float64 that `fn` does not cast itself."""
    with jax.enable_x64(exact):
        if exact:
            args = tree_map(_widened, args)
        jitted, found = jax.jit(fn), []
        for _ in range(steps):
            returned = jitted(*args)
            found.append(_named(returned))
            state = _next_state(returned, args[0]) if args else None
            if state is None:
                break
            args = (state, *args[1:])
    return found


def _next_state(returned: Any, state: Any) -> Any:
    """The part of `returned` that is the next `state`, None where none is."""
    first = returned[0] if isinstance(returned, tuple) and returned else None
    return next((each for each in (returned, first) if each is not None and _is_like(each, state)), None)


def _is_like(one: Any, other: Any) -> bool:
    if tree_structure(one) != tree_structure(other):
        return False
    pairs = zip(tree_leaves(one), tree_leaves(other), strict=True)
    return bool(tree_leaves(one)) and all(np.shape(a) == np.shape(b) for a, b in pairs)


def _named(returned: Any) -> Outputs:
    leaves, _ = tree_flatten_with_path(returned)
    return {keystr(path, simple=True, separator=".") or "result": _array(leaf) for path, leaf in leaves}


def _array(leaf: Any) -> Array:
    is_key = hasattr(leaf, "dtype") and jax.dtypes.issubdtype(leaf.dtype, jax.dtypes.prng_key)
    return np.asarray(jax.random.key_data(leaf) if is_key else leaf)


def _widened(leaf: Any) -> Any:
    if hasattr(leaf, "dtype") and jax.dtypes.issubdtype(leaf.dtype, np.floating):
        return np.asarray(leaf).astype(np.float64)
    return leaf


def _concrete(args: tuple[Any, ...]) -> Any:
    """`args` with numbers in place of shapes."""
    draw = np.random.default_rng(0)

    def filled(leaf: Any) -> Any:
        if not isinstance(leaf, jax.ShapeDtypeStruct):
            return leaf
        if jax.dtypes.issubdtype(leaf.dtype, jax.dtypes.prng_key):
            return jax.random.split(jax.random.key(0), leaf.shape) if leaf.shape else jax.random.key(0)
        if jax.dtypes.issubdtype(leaf.dtype, np.floating):
            return draw.uniform(0, 0.1, leaf.shape).astype(leaf.dtype)
        return draw.integers(0, 2, leaf.shape).astype(leaf.dtype)

    return tree_map(filled, args)


def _missing(original: Mapping[str, Array], changed: Mapping[str, Array]) -> list[str]:
    """Sentences about what only one returns, or in another shape or type."""
    sentences = [f"only the original returns {name}" for name in original if name not in changed]
    sentences += [f"only the changed function returns {name}" for name in changed if name not in original]
    for name, array in original.items():
        other = changed.get(name, array)
        if (other.shape, other.dtype) != (array.shape, array.dtype):
            kinds = [f"{each.dtype}[{', '.join(map(str, each.shape))}]" for each in (array, other)]
            sentences.append(f"{name} is {kinds[0]} in the original, {kinds[1]} in the changed function")
    return sentences


def _differences(
    runs: Sequence[list[Outputs]], exact: Sequence[list[Outputs]] | None, args: tuple[Any, ...]
) -> Iterator[TensorDifference]:
    original, repeated, changed = runs
    kinds = _kinds(original[0], args)
    for step, (one, again, other) in enumerate(zip(original, repeated, changed, strict=False)):
        for name, array in one.items():
            if name in other and other[name].shape == array.shape:
                pair = [run[step][name].astype(np.float64) for run in exact] if exact else None
                yield _difference(kinds[name], name, step + 1, (array, again[name], other[name]), pair)


def _kinds(outputs: Outputs, args: tuple[Any, ...]) -> dict[str, Kind]:
    """What each output is: an argument that was updated is a parameter, all else is judged as a gradient."""
    arguments = [_array(leaf).astype(np.float64) for leaf in tree_leaves(args) if _is_number(leaf)]
    return {name: "parameter" if _is_update(array, arguments) else "gradient" for name, array in outputs.items()}


def _is_number(leaf: Any) -> bool:
    return hasattr(leaf, "dtype") and jax.dtypes.issubdtype(leaf.dtype, np.number)


def _is_update(array: Array, arguments: Sequence[Array]) -> bool:
    values = array.astype(np.float64)
    same = (each for each in arguments if each.shape == array.shape)
    return any(np.linalg.norm(values - each) <= UPDATED * np.linalg.norm(each) for each in same)


def _difference(
    kind: Kind, name: str, step: int, three: tuple[Array, Array, Array], exact: Sequence[Array] | None
) -> TensorDifference:
    original, repeated, changed = (each.astype(np.float64) for each in three)
    known: dict[str, float] = {}
    if exact:
        one, other = exact
        known = {
            "original_error": _norm(original - one),
            "changed_error": _norm(changed - other),
            "exact_difference": _norm(other - one),
            "original_rounding": _rounding(original - one, original),
            "changed_rounding": _rounding(changed - other, original),
        }
    return TensorDifference(
        kind=kind,
        name=name,
        step=step,
        rank=0,
        norm=_norm(original),
        difference=_norm(changed - original),
        repeated=_norm(repeated - original),
        resolution=_resolution(three[0]),
        bitwise=three[0].dtype == three[2].dtype and three[0].tobytes() == three[2].tobytes(),
        finite=bool(np.isfinite(changed).all()),
        **known,
    )


def _norm(array: Array) -> float:
    return float(np.linalg.norm(array.ravel()))


def _rounding(errors: Array, values: Array) -> float:
    """The error in the middle of those that are not zero, in relation to the size of the values."""
    errors = np.abs(errors[errors != 0])
    size = _norm(values) / max(values.size, 1) ** 0.5
    return float(np.median(errors)) / size if errors.size and size else 0.0


def _resolution(array: Array) -> float:
    is_float = jax.dtypes.issubdtype(array.dtype, np.floating)
    return float(jax.numpy.finfo(array.dtype).eps) if is_float else 0.0


def _reference(found: Sequence[TensorDifference]) -> str:
    errors = [each.original_error / each.norm for each in found if each.original_error is not None and each.norm]
    exact = [each.exact_difference / each.norm for each in found if each.exact_difference is not None and each.norm]
    return (
        f"the original is up to {max(errors, default=0.0):.1e} from its float64 run; "
        f"the float64 runs are up to {max(exact, default=0.0):.1e} apart"
    )


def _name(fn: Function) -> str:
    return getattr(fn, "__qualname__", None) or type(fn).__name__
