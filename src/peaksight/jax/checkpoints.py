"""Saving and restoring with Orbax, which writes files from C++: nothing is written, and what is restored is virtual."""

from collections.abc import Callable, Mapping
from pathlib import Path
from types import ModuleType
from typing import Any

import jax

from peaksight.errors import UnsupportedError
from peaksight.jax.notes import Notes
from peaksight.overlays.late_imports import change_modules
from peaksight.overlays.patches import Patches

_CLASSES = ("Checkpointer", "AsyncCheckpointer", "PyTreeCheckpointer", "StandardCheckpointer", "CheckpointManager")
# What Orbax writes beside a tree of arrays, and the folder of the one item of a step that has no name.
_METADATA, _UNNAMED = "_METADATA", "default"


def without_checkpoint_files(patches: Patches, notes: Notes, place: Callable[[Any], Any]) -> None:
    """Let Orbax's savers save nothing, and its restorers give what `place` makes of the shape of each array.

    Shapes are those that were asked for, else those that the run saved there, else those of a checkpoint on the disk.
    """

    def change(module: ModuleType) -> None:
        checkpoints = _Checkpoints(module, notes, place)
        for name in _CLASSES:
            if (owner := getattr(module, name, None)) is not None:
                patches.set(owner, "save", lambda *args, **kwargs: checkpoints.save(*args, **kwargs))
                patches.set(owner, "restore", lambda *args, **kwargs: checkpoints.restore(*args, **kwargs))
        manager = getattr(module, "CheckpointManager", None)
        if manager is not None:
            latest = manager.latest_step
            patches.set(manager, "latest_step", lambda self: checkpoints.latest_step(self) or latest(self))

    def change_equinox(module: ModuleType) -> None:
        patches.set(module, "_assert_same", _same_arrays(module._assert_same))

    change_modules(patches, {"orbax.checkpoint": change, "equinox._serialisation": change_equinox})


def _same_arrays(assert_same: Callable[[type], Any]) -> Callable[[type], Any]:
    """That of Equinox, for which arrays of one shape and type are the same, small ones of the host as well."""

    def asserting(kind: type) -> Any:
        check = assert_same(kind)

        def is_like(new: Any, old: Any) -> bool:
            are_arrays = isinstance(new, jax.Array) and isinstance(old, jax.Array | jax.ShapeDtypeStruct)
            return are_arrays and (new.shape, new.dtype) == (old.shape, old.dtype)

        return lambda path, new, old: None if is_like(new, old) else check(path, new, old)

    return asserting


class _Checkpoints:
    """What the run would have written, by its folder."""

    def __init__(self, orbax: ModuleType, notes: Notes, place: Callable[[Any], Any]) -> None:
        self._orbax = orbax
        self._notes = notes
        self._place = place
        self._saved: dict[Path, Any] = {}

    def save(self, saver: Any, where: Any, *args: Any, **kwargs: Any) -> bool:
        self._notes.note("jax-files", "save")
        given = next(iter((*args, *kwargs.values())), None)
        named = _named(given)
        self._saved[_folder(saver, where)] = self._shapes(given) if named is None else _each(named, self._shapes)
        return True

    def restore(self, restorer: Any, *args: Any, **kwargs: Any) -> Any:
        self._notes.note("jax-files", "restore")
        for given in (*kwargs.values(), *args):
            if (named := _named(given)) is not None:
                return _each(named, lambda item: self._placed(_target((item,))))
        found = _target((*kwargs.values(), *args[1:]))
        if found is None and args and args[0] is not None:
            folder = _folder(restorer, args[0])
            found = self._saved[folder] if folder in self._saved else self._on_disk(folder)
        return self._placed(found)

    def latest_step(self, manager: Any) -> int | None:
        """The last step that the run saved with `manager`, None before any."""
        steps = [folder.name for folder in self._saved if folder.parent == Path(manager.directory)]
        return max((int(name) for name in steps if name.isdigit()), default=None)

    def _shapes(self, item: Any) -> Any:
        tree = jax.tree.map(lambda leaf: leaf if not hasattr(leaf, "dtype") else _struct(leaf), _item(item))
        return self._orbax.tree.serialize_tree(tree, keep_empty_nodes=True)

    def _on_disk(self, folder: Path) -> Any:
        """The shapes of a checkpoint, None without one: of one tree, or of each of its items by name."""
        folder = folder / _UNNAMED if (folder / _UNNAMED).exists() else folder
        if (folder / _METADATA).exists():
            tree = self._orbax.StandardCheckpointer().metadata(folder).item_metadata.tree
            return jax.tree.map(_struct, tree, is_leaf=lambda leaf: hasattr(leaf, "dtype"))
        items = {path.parent.name: self._on_disk(path.parent) for path in folder.glob(f"*/{_METADATA}")}
        return self._orbax.args.Composite(**items) if items else None

    def _placed(self, found: Any) -> Any:
        if found is None:
            raise UnsupportedError(
                "Can't restore a checkpoint whose shapes are not known: the run saved none there, nor is there one on "
                "this machine. Give Orbax the tree to restore into, as from jax.eval_shape.",
                slug="jax-restore",
            )
        if (named := _named(found)) is not None:
            return _each(named, self._placed)
        return jax.tree.map(lambda leaf: self._place(leaf) if hasattr(leaf, "dtype") else leaf, found)


def _folder(saver: Any, where: Any) -> Path:
    """That of a step of a `CheckpointManager`, or the one that is given."""
    return Path(getattr(saver, "directory", "")) / str(where)


def _struct(leaf: Any) -> jax.ShapeDtypeStruct:
    return jax.ShapeDtypeStruct(leaf.shape, leaf.dtype, sharding=_sharding_of(leaf))


def _sharding_of(leaf: Any) -> Any:
    sharding = getattr(leaf, "sharding", None)
    return sharding if isinstance(sharding, jax.sharding.NamedSharding) else None


def _item(given: Any) -> Any:
    """The tree in one of the `orbax.checkpoint.args`."""
    return getattr(given, "item", given)


def _named(given: Any) -> Any:
    """A `Composite` of `orbax.checkpoint.args`, which has an item each by key or by attribute; None for all else."""
    return given if isinstance(given, Mapping) and hasattr(type(given), "__getattr__") else None


def _each(named: Any, change: Callable[[Any], Any]) -> Any:
    return type(named)(**{name: change(item) for name, item in named.items()})


def _target(args: tuple[Any, ...]) -> Any:
    """The tree of shapes among the arguments of a restorer, None without any."""
    for given in args:
        tree = _item(given)
        leaves = jax.tree.leaves(tree)
        if leaves and all(hasattr(leaf, "shape") and hasattr(leaf, "dtype") for leaf in leaves):
            return tree
    return None
