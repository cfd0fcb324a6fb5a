"""Saving and restoring with Orbax, which writes files from C++: nothing is written, and what is restored is virtual."""

from collections.abc import Callable, Mapping
from types import ModuleType
from typing import Any

import jax

from peaksight.errors import UnsupportedError
from peaksight.jax.notes import Notes
from peaksight.overlays.late_imports import change_modules
from peaksight.overlays.patches import Patches

_CLASSES = ("Checkpointer", "AsyncCheckpointer", "PyTreeCheckpointer", "StandardCheckpointer", "CheckpointManager")


def without_checkpoint_files(patches: Patches, notes: Notes, place: Callable[[Any], Any]) -> None:
    """Let Orbax's savers save nothing, and its restorers give what `place` makes of each shape that was asked for."""

    def save(self: Any, *args: Any, **kwargs: Any) -> bool:
        notes.note("jax-files", "save")
        return True

    def restore(self: Any, *args: Any, **kwargs: Any) -> Any:
        notes.note("jax-files", "restore")
        # A Composite of orbax.checkpoint.args: an item each, by key or by attribute.
        for given in (*kwargs.values(), *args):
            if isinstance(given, Mapping) and hasattr(type(given), "__getattr__"):
                return type(given)(**{name: jax.tree.map(place, _target((item,), {})) for name, item in given.items()})
        return jax.tree.map(place, _target(args[1:], kwargs))

    def change(module: ModuleType) -> None:
        for name in _CLASSES:
            if (owner := getattr(module, name, None)) is not None:
                patches.set(owner, "save", save)
                patches.set(owner, "restore", restore)

    change_modules(patches, {"orbax.checkpoint": change})


def _target(args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
    """The tree of shapes among the arguments of a restorer; UnsupportedError without any."""
    for given in (*kwargs.values(), *args):
        tree = getattr(given, "item", given)
        leaves = jax.tree.leaves(tree)
        if leaves and all(hasattr(leaf, "shape") and hasattr(leaf, "dtype") for leaf in leaves):
            return tree
    raise UnsupportedError(
        "Can't restore a checkpoint whose shapes are not given: a simulated run reads none. Give Orbax the tree to "
        "restore into, as from jax.eval_shape.",
        slug="jax-restore",
    )
