"""Names for the state of modules of `flax.nnx`, which arrives at `jax.jit` as a list: `model.blocks[0].kernel`."""

from collections.abc import Callable, Sequence
from functools import wraps
from types import ModuleType
from typing import Any

import jax

from peaksight.overlays.late_imports import change_modules
from peaksight.overlays.patches import Patches

# What flax puts between a module and its state.
WRAPPER = r"\.states\[\d+\]"


def name_nnx_states(patches: Patches) -> None:
    """Have `nnx.jit` pass the paths along, and JAX told of them, where flax is imported from here on."""
    register = jax.tree_util.register_pytree_node

    @wraps(register)
    def registering(kind: type, flatten: Callable[[Any], Any], *args: Any, **kwargs: Any) -> None:
        if kind.__name__ != "FlatState" or args[1:] or kwargs:
            return register(kind, flatten, *args, **kwargs)
        return jax.tree_util.register_pytree_with_keys(kind, lambda state: _with_keys(*flatten(state)), *args, flatten)

    def change(module: ModuleType) -> None:
        if (split := getattr(module, "_jit_split_fn", None)) is not None:
            patches.set(module, "_jit_split_fn", lambda context, *args: split(_WithPaths(context), *args))

    patches.set(jax.tree_util, "register_pytree_node", registering)
    change_modules(patches, {"flax.nnx.transforms.compilation": change})


def named_by_path(closed: Any, arguments: Any, results: Any) -> Any:
    """`closed` with paths in place of the numbers of states, where flax told JAX of no keys before it was imported.

    `arguments` and `results` are the trees that its inputs and outputs are the leaves of.
    """
    info = closed.jaxpr.debug_info
    known = (tuple(info.arg_names or ()), tuple(info.result_paths or ()))
    named = (_with_paths(known[0], arguments), _with_paths(known[1], results))
    if named == known:
        return closed
    info = info._replace(arg_names=named[0], result_paths=named[1])
    return closed.replace(jaxpr=closed.jaxpr.replace(debug_info=info))


def _with_paths(known: tuple[str, ...], structure: Any) -> tuple[str, ...]:
    names, tree = list(known), jax.tree.unflatten(structure, range(structure.num_leaves))
    for state in filter(_is_state, jax.tree.leaves(tree, is_leaf=_is_state)):
        for place, (path, value) in enumerate(state):
            for number in jax.tree.leaves(value):
                before, numbered, after = names[number].rpartition(f"[{place}]")
                if numbered and joined(path) not in names[number]:
                    names[number] = f"{before}.{joined(path)}{after}"
    return tuple(names)


def _is_state(node: Any) -> bool:
    return type(node).__name__ == "FlatState"


class _WithPaths:
    """A `SplitContext` of flax that always gives paths."""

    def __init__(self, context: Any) -> None:
        self._context = context

    def flatten(self, node: Any, *filters: Any, **_: Any) -> Any:
        return self._context.flatten(node, *filters)


def _with_keys(values: Sequence[Any], paths: Sequence[tuple[Any, ...]]) -> tuple[list[Any], Any]:
    keys = (jax.tree_util.GetAttrKey(joined(path)) for path in paths)
    return list(zip(keys, values, strict=True)), paths


def joined(path: tuple[Any, ...]) -> str:
    """`blocks[0].kernel`."""
    return "".join(f"[{part}]" if isinstance(part, int) else f".{part}" for part in path).removeprefix(".")
