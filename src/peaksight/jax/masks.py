"""Masks that a script makes of the paths of its parameters, where they select nothing."""

import os
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import jax

from peaksight.jax.source_lines import user_line
from peaksight.overlays.patches import Patches
from peaksight.records.jax_program import MaskFact

# Of fewer leaves a mask is hardly one of parameters.
MIN_LEAVES = 4


class Masks:
    """The masks made by `jax.tree_util.tree_map_with_path` that are False everywhere.

    Where `any` in place of `all` would make one select something, that is noted; with `repair`, that mask is what the
    script gets.
    """

    def __init__(self, *, repair: bool = False) -> None:
        """Nothing was made yet."""
        self.empty: list[MaskFact] = []
        self._repair = repair

    @property
    def repairable(self) -> bool:
        """Whether one of them selects something with `any` in place of `all`."""
        return any(each.num_selected_by_any for each in self.empty)

    def watch(self, patches: Patches) -> None:
        """See every mask that is made until `patches` close."""
        for module, name in ((jax.tree_util, "tree_map_with_path"), (jax.tree, "map_with_path")):
            if original := getattr(module, name, None):
                patches.set(module, name, self._watching(original))

    def _watching(self, original: Callable[..., Any]) -> Callable[..., Any]:
        def tree_map_with_path(f: Any, tree: Any, *rest: Any, **options: Any) -> Any:
            made = original(f, tree, *rest, **options)
            if not _selects_nothing(made):
                return made
            with _any_for_all(f):
                other = original(f, tree, *rest, **options)
            leaves = jax.tree_util.tree_leaves(other)
            fact = MaskFact(at=user_line(), num_leaves=len(leaves), num_selected_by_any=sum(map(bool, leaves)))
            if fact not in self.empty:
                self.empty.append(fact)
            return other if self._repair and fact.num_selected_by_any else made

        return tree_map_with_path


def _selects_nothing(made: Any) -> bool:
    leaves = jax.tree_util.tree_leaves(made)
    return len(leaves) >= MIN_LEAVES and all(leaf is False for leaf in leaves)


@contextmanager
def _any_for_all(f: Any) -> Iterator[None]:
    """Let `all` mean `any` in the file of `f` and in the modules beside it."""
    spaces = [space for space in _own_globals(f) if "all" not in space]
    for space in spaces:
        space["all"] = any
    try:
        yield
    finally:
        for space in spaces:
            del space["all"]


def _own_globals(f: Any) -> list[dict[str, Any]]:
    own = getattr(f, "__globals__", None)
    if own is None:
        return []
    folder = os.path.dirname(str(own.get("__file__", "")))
    files = ((module, getattr(module, "__file__", None) or "") for module in list(sys.modules.values()))
    beside = [vars(module) for module, file in files if folder and os.path.dirname(file) == folder]
    return [own, *(space for space in beside if space is not own)]
