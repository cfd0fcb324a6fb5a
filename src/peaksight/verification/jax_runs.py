"""Runs of a JAX function for a certificate: as it is, in float64, and with random numbers that no key decides over."""

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import jax
import numpy as np
from jax.extend.core import ClosedJaxpr, jaxprs_in_params
from jax.tree_util import (
    keystr,
    tree_flatten,
    tree_flatten_with_path,
    tree_leaves,
    tree_map,
    tree_structure,
    tree_unflatten,
)

from peaksight.jax.interpreter import Interpreter, RandomBits
from peaksight.verification.numpy_arrays import Array

Function = Callable[..., Any]
_KEY_WORDS = ("key", "rng")


@dataclass(frozen=True, slots=True)
class Step:
    """What one call returned: `arrays` by their paths, and random keys, which say what is drawn later.

    `kept` are the leaves of the state that came back with the bits that they were given with.
    """

    arrays: dict[str, Array]
    keys: dict[str, bytes] = field(default_factory=dict)
    kept: frozenset[str] = frozenset()
    num_leaves: int = 0


Run = list[Step]


def of_arrays(fn: Function, args: tuple[Any, ...]) -> Function:
    """`fn` as a function of `arrays_only(args)` that returns arrays only; all else is as in `args` in every call.

    Where `fn` changes its arguments, as what `nnx.jit` makes does, these are returned before what it returns itself.
    """
    leaves, structure = tree_flatten(args)
    places = [place for place, leaf in enumerate(leaves) if _is_array(leaf)]

    def called(*given: Any) -> Any:
        whole = list(leaves)
        for place, leaf in zip(places, tree_leaves(given), strict=True):
            whole[place] = leaf
        rebuilt = tree_unflatten(structure, whole)
        returned = fn(*rebuilt)
        is_changed = [id(leaf) for leaf in tree_leaves(rebuilt)] != [id(leaf) for leaf in whole]
        return arrays_only((*rebuilt, returned) if is_changed else returned)

    return called


def arrays_only(tree: Any) -> Any:
    """`tree` with None in place of what is no number: activations and flags of modules of Equinox."""
    return tree_map(lambda leaf: leaf if _is_array(leaf) else None, tree)


def _is_array(leaf: Any) -> bool:
    return hasattr(leaf, "dtype") or (isinstance(leaf, (int, float, complex)) and not isinstance(leaf, bool))


def run_as_it_is(fn: Function, args: tuple[Any, ...], steps: int) -> Run:
    """Up to `steps` calls of `fn`: where it returns the next value of its first argument, that is handed back."""
    return _run(jax.jit(fn), args, steps)


def run_exactly(fn: Function, args: tuple[Any, ...], steps: int, bits: RandomBits | None = None) -> Run:
    """The same in float64, whatever `fn` casts to; with `bits` in place of what random keys would give."""
    closed, shapes = jax.make_jaxpr(fn, return_shape=True)(*args)
    with jax.enable_x64(True):
        evaluate = jax.jit(lambda *leaves: Interpreter(bits).run(closed, leaves))

        def exact(*args: Any) -> Any:
            return tree_unflatten(tree_structure(shapes), evaluate(*tree_leaves(args)))

        return _run(exact, args, steps)


def draws(fn: Function, args: tuple[Any, ...]) -> bool:
    """Whether `fn` draws random numbers."""
    return _draws(jax.make_jaxpr(fn)(*args))


def _draws(closed: ClosedJaxpr) -> bool:
    waiting = [closed.jaxpr]
    while waiting:
        for eqn in waiting.pop().eqns:
            if eqn.primitive.name == "random_bits":
                return True
            waiting += jaxprs_in_params(eqn.params)
    return False


def _run(fn: Function, args: tuple[Any, ...], steps: int) -> Run:
    found = []
    for _ in range(steps):
        returned = fn(*args)
        state = _next_state(returned, args[0]) if args else None
        found.append(_step(returned, None if state is None else args[0], state))
        if state is None:
            break
        args = (state, *args[1:])
    return found


def _step(returned: Any, before: Any, after: Any) -> Step:
    arrays, keys = {}, {}
    for path, leaf in tree_flatten_with_path(returned)[0]:
        name = _name(path)
        if _is_key(name, leaf):
            keys[name] = as_array(leaf).tobytes()
        else:
            arrays[name] = as_array(leaf)
    pairs = zip(tree_flatten_with_path(before)[0], tree_leaves(after), strict=True)
    kept = {_name(path) for (path, old), new in pairs if as_array(old).tobytes() == as_array(new).tobytes()}
    return Step(arrays, keys, frozenset(kept), len(tree_leaves(after)))


def _name(path: Any) -> str:
    return keystr(path, simple=True, separator=".") or "result"


def _is_key(name: str, leaf: Any) -> bool:
    """Whether it is a random key: of the type of keys, or the raw numbers of one."""
    if hasattr(leaf, "dtype") and jax.dtypes.issubdtype(leaf.dtype, jax.dtypes.prng_key):
        return True
    is_raw = getattr(leaf, "dtype", None) == np.uint32 and np.shape(leaf)[-1:] in ((2,), (4,))
    return is_raw and any(word in name.lower() for word in _KEY_WORDS)


def _next_state(returned: Any, state: Any) -> Any:
    """The part of `returned` that is the next `state`, None where none is."""
    first = returned[0] if isinstance(returned, tuple) and returned else None
    return next((each for each in (returned, first) if each is not None and _is_like(each, state)), None)


def _is_like(one: Any, other: Any) -> bool:
    if tree_structure(one) != tree_structure(other):
        return False
    pairs = zip(tree_leaves(one), tree_leaves(other), strict=True)
    return bool(tree_leaves(one)) and all(np.shape(a) == np.shape(b) for a, b in pairs)


def as_array(leaf: Any) -> Array:
    """A leaf of what a function takes or returns; of a random key its numbers."""
    is_key = hasattr(leaf, "dtype") and jax.dtypes.issubdtype(leaf.dtype, jax.dtypes.prng_key)
    return np.asarray(jax.random.key_data(leaf) if is_key else leaf)


def concrete(args: tuple[Any, ...]) -> tuple[Any, ...]:
    """`args` with seeded numbers in place of shapes."""
    draw = np.random.default_rng(0)

    def filled(leaf: Any) -> Any:
        if not isinstance(leaf, jax.ShapeDtypeStruct):
            return leaf
        if jax.dtypes.issubdtype(leaf.dtype, jax.dtypes.prng_key):
            return jax.random.split(jax.random.key(0), leaf.shape) if leaf.shape else jax.random.key(0)
        if jax.dtypes.issubdtype(leaf.dtype, np.floating):
            return draw.uniform(0, 0.1, leaf.shape).astype(leaf.dtype)
        return draw.integers(0, 2, leaf.shape).astype(leaf.dtype)

    return tuple(tree_map(filled, args))
