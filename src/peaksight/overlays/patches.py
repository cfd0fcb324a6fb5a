"""Attributes and kernels replaced for the length of a run, and put back after it."""

import sys
import warnings
from collections.abc import Callable, Collection, Iterator, Mapping
from contextlib import ExitStack, contextmanager, suppress
from types import ModuleType
from typing import Any

_ABSENT = object()


class Patches(ExitStack):
    """A stack of replaced attributes and kernels; leaving the context restores them in reverse order."""

    def __init__(self) -> None:
        """Nothing is replaced yet."""
        super().__init__()
        self._replaced: list[tuple[Any, str, Any]] = []

    def set(self, owner: Any, name: str, value: Any) -> Any:
        """Replace `owner.name` by `value`, remembering whether it was there; returns what it was, or None."""
        before = _current(owner, name)
        self._replaced.append((owner, name, before))
        self.callback(_restore, owner, name, before)
        setattr(owner, name, value)
        return None if before is _ABSENT else before

    def set_wherever_imported(self, name: str, value: Any, *, of: ModuleType, also_as: str) -> None:
        """Replace `name` of the module `of`, and where others have it by `from ... import`, maybe `also_as`."""
        before = getattr(of, name)
        for module in list(sys.modules.values()):
            for as_name in (name, also_as):
                if getattr(module, "__dict__", {}).get(as_name) is before:
                    self.set(module, as_name, value)

    @contextmanager
    def suspended(self, choose: Callable[[Any, str], bool]) -> Iterator[None]:
        """A context in which the attributes that `choose(owner, name)` takes are what they were at first."""
        with ExitStack() as meanwhile:
            for owner, name, before in self._first(choose):
                meanwhile.callback(_restore, owner, name, _current(owner, name))
                _restore(owner, name, before)
            yield

    def withdraw(self, choose: Callable[[Any, str], bool]) -> None:
        """Make the attributes that `choose(owner, name)` takes what they were at first, from here on."""
        for owner, name, before in self._first(choose):
            _restore(owner, name, before)

    def originals(self, choose: Callable[[Any, str], bool]) -> list[Any]:
        """What the attributes were at first that `choose(owner, name)` takes."""
        return [before for _, _, before in self._first(choose) if before is not _ABSENT]

    def _first(self, choose: Callable[[Any, str], bool]) -> Collection[tuple[Any, str, Any]]:
        first: dict[tuple[int, str], tuple[Any, str, Any]] = {}
        for owner, name, before in self._replaced:
            if choose(owner, name):
                first.setdefault((id(owner), name), (owner, name, before))
        return first.values()

    def set_kernels(self, dispatch_key: str, kernels: Mapping[str, Callable[..., Any]]) -> None:
        """Replace the kernels of operators of aten, by name, for `dispatch_key`."""
        import torch  # a run under JAX does without

        library = torch.library.Library("aten", "IMPL")
        self.callback(library._destroy)
        with warnings.catch_warnings():
            warnings.filterwarnings("ignore", "Warning only once for all operators")  # that one is overridden
            for name, kernel in kernels.items():
                library.impl(name, kernel, dispatch_key, allow_override=True)


def _current(owner: Any, name: str) -> Any:
    return vars(owner).get(name, _ABSENT) if isinstance(owner, type) else getattr(owner, name, _ABSENT)


def _restore(owner: Any, name: str, before: Any) -> None:
    if before is _ABSENT:
        with suppress(AttributeError):  # it was withdrawn
            delattr(owner, name)
    else:
        setattr(owner, name, before)
