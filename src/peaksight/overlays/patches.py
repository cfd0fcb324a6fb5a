"""Attributes and kernels replaced for the length of a run, and put back after it."""

import sys
import warnings
from collections.abc import Callable, Mapping
from contextlib import ExitStack
from types import ModuleType
from typing import Any

_ABSENT = object()


class Patches(ExitStack):
    """A stack of replaced attributes and kernels; leaving the context restores them in reverse order."""

    def set(self, owner: Any, name: str, value: Any) -> Any:
        """Replace `owner.name` by `value`, remembering whether it was there; returns what it was, or None."""
        before = vars(owner).get(name, _ABSENT) if isinstance(owner, type) else getattr(owner, name, _ABSENT)
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

    def set_kernels(self, dispatch_key: str, kernels: Mapping[str, Callable[..., Any]]) -> None:
        """Replace the kernels of operators of aten, by name, for `dispatch_key`."""
        import torch  # a run under JAX does without

        library = torch.library.Library("aten", "IMPL")
        self.callback(library._destroy)
        with warnings.catch_warnings():
            warnings.filterwarnings("ignore", "Warning only once for all operators")  # that one is overridden
            for name, kernel in kernels.items():
                library.impl(name, kernel, dispatch_key, allow_override=True)


def _restore(owner: Any, name: str, before: Any) -> None:
    if before is _ABSENT:
        delattr(owner, name)
    else:
        setattr(owner, name, before)
