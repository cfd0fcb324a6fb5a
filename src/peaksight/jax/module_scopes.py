"""Name scopes for modules of `flax.nnx` and Equinox, which have none: `GPT.blocks[0].attn`, as those of Linen."""

import re
import sys
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from contextvars import ContextVar
from functools import partial, wraps
from types import ModuleType
from typing import Any

import jax

from peaksight.jax.nnx_names import joined
from peaksight.overlays.late_imports import change_modules
from peaksight.overlays.patches import Patches

# The path of each module in a root, by its identity.
Paths = Mapping[int, str]

# Modules of Equinox in which a function is wrapped, as by `eqx.filter_grad`.
_WRAPPERS = re.compile(r"equinox\.(?!nn\b)")

# The root whose module is being called, and the path of that one in it.
_CALLED: ContextVar[tuple[Paths, str]] = ContextVar("called", default=({}, ""))


def scope_modules(patches: Patches) -> None:
    """Call modules within a scope of their path in the outermost one, where the libraries are imported from here on."""

    def change_nnx(library: ModuleType) -> None:
        _watch_subclasses(patches, library.Module, _paths_of_nnx)

    def change_equinox(library: ModuleType) -> None:
        _watch_subclasses(patches, library.Module, partial(_paths_of_equinox, library.Module))

    change_modules(patches, {"flax.nnx.module": change_nnx, "equinox._module._module": change_equinox})


def _watch_subclasses(patches: Patches, base: Any, paths_of: Callable[[Any], Paths]) -> None:
    def watch(kind: type) -> None:
        call = vars(kind).get("__call__")
        if call is not None and not _WRAPPERS.match(kind.__module__):
            patches.set(kind, "__call__", _in_scope(call, paths_of))

    def initialising(kind: Any, /, **options: Any) -> None:
        super(base, kind).__init_subclass__(**options)
        watch(kind)

    for kind in _subclasses(base):
        watch(kind)
    if "__init_subclass__" not in vars(base):
        patches.set(base, "__init_subclass__", classmethod(initialising))


def _subclasses(base: type) -> Iterator[type]:
    kinds: list[type] = base.__subclasses__()
    for kind in kinds:
        yield kind
        yield from _subclasses(kind)


def _in_scope(call: Callable[..., Any], paths_of: Callable[[Any], Paths]) -> Callable[..., Any]:
    @wraps(call)
    def called(module: Any, *args: Any, **kwargs: Any) -> Any:
        with _scope_of(module, paths_of):
            return call(module, *args, **kwargs)

    return called


@contextmanager
def _scope_of(module: Any, paths_of: Callable[[Any], Paths]) -> Iterator[None]:
    """Within the scope of what `module` is in the one that calls it; of its type if that does not hold it."""
    paths, path = _CALLED.get()
    own = paths.get(id(module))
    if own is None:
        paths, own = paths_of(module), ""
    name = own.removeprefix(path).removeprefix(".") if own else type(module).__name__
    token = _CALLED.set((paths, own))
    try:
        if name:
            with jax.named_scope(name):
                yield
        else:
            yield
    finally:
        _CALLED.reset(token)


def _paths_of_nnx(root: Any) -> Paths:
    return {id(module): joined(path) for path, module in sys.modules["flax.nnx"].iter_modules(root)}


def _paths_of_equinox(base: type, root: Any) -> Paths:
    found: dict[int, str] = {}

    def visit(module: Any, path: str) -> None:
        if id(module) in found:
            return
        found[id(module)] = path
        inner = jax.tree_util.tree_flatten_with_path(
            module, is_leaf=lambda each: each is not module and isinstance(each, base)
        )
        for place, each in inner[0]:
            if isinstance(each, base):
                visit(each, (path + jax.tree_util.keystr(place)).removeprefix("."))

    visit(root, "")
    return found
