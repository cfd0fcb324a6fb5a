"""Names for arguments of `equinox.filter_jit`, which arrive at `jax.jit` as flat lists: `model.layers[0].weight`."""

from collections.abc import Iterator, Sequence
from inspect import Parameter, Signature
from types import ModuleType
from typing import Any

import jax

from peaksight.overlays.late_imports import change_modules
from peaksight.overlays.patches import Patches

# What equinox._jit puts before them.
WRAPPER = r"^dynamic_(?:no)?donate\['\w+'\]\."


def name_equinox_arguments(patches: Patches) -> None:
    """Have `filter_jit` pass the paths along, where Equinox is imported from here on."""

    def change(module: ModuleType) -> None:
        preprocess = module._preprocess

        def preprocessing(info: Any, args: Any, kwargs: Any, return_static: bool = False) -> Any:
            donated, kept, *static = preprocess(info, args, kwargs, return_static=return_static)
            bound_args, bound_kwargs = module._bind(info[0], args, kwargs)
            names = _names(bound_args, bound_kwargs, info[0])
            return (_named(donated, names), _named(kept, names), *static)

        patches.set(module, "_preprocess", preprocessing)

    change_modules(patches, {"equinox._jit": change})


def take_shapes(patches: Patches) -> None:
    """Have `filter_jit` trace `jax.ShapeDtypeStruct`s as arrays, which are constants to Equinox."""

    def change(module: ModuleType) -> None:
        is_array = module.is_array
        patches.set(module, "is_array", lambda leaf: is_array(leaf) or isinstance(leaf, jax.ShapeDtypeStruct))

    change_modules(patches, {"equinox._jit": change})


@jax.tree_util.register_pytree_with_keys_class
class _Leaves:
    """The leaves of arguments with their names; of those that are no arrays, None."""

    def __init__(self, leaves: Sequence[Any], names: tuple[str, ...]) -> None:
        self._leaves = tuple(leaves)
        self._names = names

    def __iter__(self) -> Iterator[Any]:
        return iter(self._leaves)

    def tree_flatten_with_keys(self) -> tuple[list[tuple[Any, Any]], tuple[str, ...]]:
        """Each leaf by its name."""
        keys = (jax.tree_util.GetAttrKey(name) for name in self._names)
        return list(zip(keys, self._leaves, strict=True)), self._names

    @classmethod
    def tree_unflatten(cls, names: tuple[str, ...], leaves: Sequence[Any]) -> "_Leaves":
        return cls(leaves, names)


def _named(group: dict[str, Any], names: dict[str, tuple[str, ...]]) -> dict[str, Any]:
    return {key: _Leaves(leaves, names[key]) if key in names else leaves for key, leaves in group.items()}


def _names(args: tuple[Any, ...], kwargs: dict[str, Any], signature: Signature) -> dict[str, tuple[str, ...]]:
    """Those of the leaves of the first argument, and of the rest with what Equinox adds at the end."""
    places = _positional(signature, len(args))
    first = jax.tree_util.tree_flatten_with_path(args[0] if args else None)[0]
    rest = [*zip(places[1:], args[1:], strict=True), *kwargs.items()]
    others = [
        name + jax.tree_util.keystr(path)
        for name, arg in rest
        for path, _ in jax.tree_util.tree_flatten_with_path(arg)[0]
    ]
    return {
        "first": tuple(places[0] + jax.tree_util.keystr(path) for path, _ in first) if args else (),
        "rest": tuple(others),
    }


def _positional(signature: Signature, count: int) -> list[str]:
    """The names of `count` positional arguments: `model`, and `args[0]` of `*args`."""
    named = [each for each in signature.parameters.values() if each.kind is not Parameter.VAR_POSITIONAL]
    names = [each.name for each in named if each.kind is not Parameter.KEYWORD_ONLY][:count]
    return names + [f"args[{place}]" for place in range(count - len(names))]
