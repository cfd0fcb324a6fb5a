"""Which implementation of its step an optimizer of torch.optim runs: fused, foreach or a loop."""

import functools
import inspect
from collections.abc import Callable, Iterator
from typing import Any

import torch

from peaksight.overlays.patches import Patches

# What the constructors take for each.
IMPLEMENTATIONS = {
    "fused": {"fused": True, "foreach": False},
    "foreach": {"fused": False, "foreach": True},
    "for-loop": {"fused": False, "foreach": False},
}


def apply(patches: Patches, note: Callable[[], None], *, implementation: str) -> None:
    """Give `implementation` to every optimizer of torch.optim that has it, until `patches` is left.

    Those without it stay as they are: LBFGS has none, RMSprop no fused one.
    """
    wanted = IMPLEMENTATIONS[implementation]
    for cls in _optimizers():
        patches.set(cls, "__init__", _with(vars(cls)["__init__"], wanted, note))


def _optimizers() -> Iterator[type]:
    """Those classes whose constructor takes `foreach`."""
    for cls in vars(torch.optim).values():
        if isinstance(cls, type) and "foreach" in inspect.signature(cls).parameters and "__init__" in vars(cls):
            yield cls


def _with(make: Callable[..., Any], wanted: dict[str, bool], note: Callable[[], None]) -> Callable[..., Any]:
    signature = inspect.signature(make)

    @functools.wraps(make)
    def made(*args: Any, **kwargs: Any) -> None:
        bound = signature.bind(*args, **kwargs)
        if all(name in signature.parameters for name, value in wanted.items() if value):
            bound.arguments.update({name: value for name, value in wanted.items() if name in signature.parameters})
            note()
        make(*bound.args, **bound.kwargs)

    return made
