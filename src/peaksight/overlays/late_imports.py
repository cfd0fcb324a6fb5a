"""Changing modules of libraries that may not be loaded yet: at once those that are, the others once they are."""

import sys
from collections.abc import Callable, Mapping, Sequence
from importlib.machinery import ModuleSpec
from types import ModuleType
from typing import Any

from peaksight.overlays.patches import Patches

Change = Callable[[ModuleType], None]


def change_modules(patches: Patches, changes: Mapping[str, Change]) -> None:
    """Call each of `changes`, by the name of a module, with that module: now, or right after it is imported.

    A change puts back what it replaces by `patches`, as whoever calls this does.
    """
    loaded = [name for name in changes if name in sys.modules]
    finder = _LateFinder(changes)
    sys.meta_path.insert(0, finder)
    patches.callback(_remove, finder)
    for name in loaded:  # in the order of `changes`, which may import others of them
        changes[name](sys.modules[name])


def _remove(finder: "_LateFinder") -> None:
    """A script may have taken it away itself."""
    if finder in sys.meta_path:
        sys.meta_path.remove(finder)


class _LateFinder:
    """Finds the modules that are to be changed as the other finders do, and has them changed when they are loaded."""

    def __init__(self, changes: Mapping[str, Change]) -> None:
        self._changes = changes

    def find_spec(self, name: str, path: Sequence[str] | None, target: ModuleType | None = None) -> ModuleSpec | None:
        if name not in self._changes:
            return None
        others = sys.meta_path[sys.meta_path.index(self) + 1 :]
        # Python too passes over those without.
        find = [finder.find_spec for finder in others if hasattr(finder, "find_spec")]
        spec = next(filter(None, (each(name, path, target) for each in find)), None)
        if spec is not None and spec.loader is not None:
            self._change_after(name, spec.loader)
        return spec

    def _change_after(self, name: str, loader: Any) -> None:
        execute = loader.exec_module

        def exec_module(module: ModuleType) -> None:
            execute(module)
            self._changes[name](sys.modules[name])

        loader.exec_module = exec_module
