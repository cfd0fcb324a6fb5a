"""Spares a run the import of torch._dynamo, seconds that it has no use for before it calls `torch.compile`.

torch.optim, FakeTensorMode, torchvision and transformers import the package for a few names that do nothing outside
of a compilation. Stand-ins answer these; whoever asks for more gets the real package.
"""

import importlib
import importlib.util
import sys
from collections.abc import Sequence
from importlib.machinery import ModuleSpec
from types import ModuleType
from typing import Any

import torch

from peaksight.overlays.patches import Patches

PACKAGE = "torch._dynamo"


def _decorate(function: Any = None, *args: Any, **kwargs: Any) -> Any:
    """A decorator, with or without arguments, that changes nothing."""
    return function if callable(function) else lambda decorated: decorated


def _do_nothing(*args: Any, **kwargs: Any) -> None:
    """Outside of a compilation there is nothing to do."""


ANSWERS: dict[str, dict[str, Any]] = {
    PACKAGE: {
        "disable": _decorate,
        "assume_constant_result": _decorate,
        "allow_in_graph": _decorate,
        "disallow_in_graph": _decorate,
        "graph_break": _do_nothing,
        "mark_static": _do_nothing,
        "mark_dynamic": _do_nothing,
        "mark_static_address": _do_nothing,
    },
    f"{PACKAGE}.utils": {"is_compile_supported": lambda device_type: False},
}
# Submodules that do not need the package around them.
STANDALONE = (f"{PACKAGE}.config", f"{PACKAGE}._trace_wrapped_higher_order_op")


def install(patches: Patches) -> None:
    """Put the stand-ins in place until `patches` is left, unless the real package is already there."""
    if PACKAGE not in sys.modules:
        stand_ins = _StandIns()
        stand_ins.enter()
        patches.callback(stand_ins.leave)


class _StandIns:
    """The stand-ins in `sys.modules`, and the finder that notices imports of other submodules."""

    def __init__(self) -> None:
        self._modules = {name: _StandIn(name, answers, self) for name, answers in ANSWERS.items()}

    def enter(self) -> None:
        sys.modules.update(self._modules)
        torch._dynamo = self._modules[PACKAGE]
        sys.meta_path.insert(0, self)

    def leave(self) -> None:
        """Make room for the real package, unless it is there already."""
        if self in sys.meta_path:
            sys.meta_path.remove(self)
            for name in (*self._modules, *STANDALONE):
                sys.modules.pop(name, None)
            del torch._dynamo

    def find_spec(self, name: str, path: Sequence[str] | None = None, target: Any = None) -> ModuleSpec | None:
        """Load the real package before any submodule that needs it."""
        if not name.startswith(f"{PACKAGE}.") or name in STANDALONE:
            return None
        return ModuleSpec(name, _Loaded(self.real(name)))  # type: ignore[arg-type]

    def real(self, name: str) -> ModuleType:
        """The real module `name`."""
        self.leave()
        importlib.import_module(PACKAGE)
        return importlib.import_module(name)


class _StandIn(ModuleType):
    """A module with a few names; asked for another one, it gives way to the real module."""

    def __init__(self, name: str, answers: dict[str, Any], stand_ins: _StandIns) -> None:
        super().__init__(name)
        spec = importlib.util.find_spec(PACKAGE)
        vars(self).update(answers, _stand_ins=stand_ins)
        if name == PACKAGE and spec is not None:
            self.__path__ = spec.submodule_search_locations or []

    def __getattr__(self, name: str) -> Any:
        if name.startswith("__"):
            raise AttributeError(name)
        return getattr(self._stand_ins.real(self.__name__), name)


class _Loaded:
    """Loads what is loaded already."""

    def __init__(self, module: ModuleType) -> None:
        self._module = module

    def create_module(self, spec: ModuleSpec) -> ModuleType:
        return self._module

    def exec_module(self, module: ModuleType) -> None:
        """It has been executed."""
