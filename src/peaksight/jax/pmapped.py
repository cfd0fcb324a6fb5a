"""What `jax.pmap` is given: JAX itself forgets the name of the function, and those of its arguments."""

import inspect
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from functools import wraps
from typing import Any

import jax
from jax.extend.core import ClosedJaxpr

from peaksight.jax.compiling import Call
from peaksight.overlays.patches import Patches


@dataclass(frozen=True, slots=True)
class _Mapped:
    name: str
    paths: tuple[str, ...]


class Pmapped:
    """Remembers which function of `jax.pmap` is being called."""

    def __init__(self) -> None:
        """None is."""
        self._running: _Mapped | None = None
        self._named: dict[int, tuple[ClosedJaxpr, ClosedJaxpr]] = {}

    def watch(self, patches: Patches) -> None:
        """Know of the calls of what `jax.pmap` returns from here on."""
        pmap = jax.pmap

        @wraps(pmap)
        def watched(function: Callable[..., Any], *options: Any, **named: Any) -> Any:
            mapped = pmap(function, *options, **named)

            @wraps(mapped)
            def called(*args: Any, **kwargs: Any) -> Any:
                with self._in_call(function, args, kwargs):
                    return mapped(*args, **kwargs)

            return called

        patches.set(jax, "pmap", watched)

    def named(self, call: Call) -> Call:
        """`call` by the names of the function that runs, where it is that of a `jax.pmap`."""
        running, closed = self._running, call.closed
        if running is None or len(running.paths) != len(closed.in_avals):
            return call
        if id(closed) not in self._named:
            info = closed.jaxpr.debug_info._replace(arg_names=running.paths)
            self._named[id(closed)] = closed, closed.replace(jaxpr=closed.jaxpr.replace(debug_info=info))
        return replace(call, name=running.name, closed=self._named[id(closed)][1])

    @contextmanager
    def _in_call(self, function: Callable[..., Any], args: Sequence[Any], kwargs: Mapping[str, Any]) -> Iterator[None]:
        before = self._running
        self._running = _Mapped(getattr(function, "__name__", type(function).__name__), _paths(function, args, kwargs))
        try:
            yield
        finally:
            self._running = before


def _paths(function: Callable[..., Any], args: Sequence[Any], kwargs: Mapping[str, Any]) -> tuple[str, ...]:
    """`state.params['w']` for each array among the arguments."""
    try:
        given = inspect.signature(function).bind(*args, **kwargs).arguments
    except (TypeError, ValueError):
        given = {f"args[{place}]": each for place, each in enumerate(args)} | dict(kwargs)
    return tuple(
        name + jax.tree_util.keystr(path)
        for name, tree in given.items()
        for path, _ in jax.tree_util.tree_leaves_with_path(tree)
    )
