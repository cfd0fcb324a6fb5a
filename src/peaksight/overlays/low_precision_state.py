"""Adam of torch.optim as the one of bitsandbytes or torchao, whose state has 8 bits."""

import functools
import inspect
from collections.abc import Callable, Mapping
from importlib import import_module
from importlib.util import find_spec
from typing import Any

import torch

from peaksight.errors import PlanError
from peaksight.overlays.patches import Patches

# What the classes of torch.optim are called in `LIBRARY.optim`.
_CLASSES = {"Adam": "Adam8bit", "AdamW": "AdamW8bit"}
_PASSED_ON = ("params", "lr", "betas", "eps", "weight_decay")
# Formulas that not both libraries have.
_NOT_THERE = ("amsgrad", "maximize", "capturable", "differentiable", "decoupled_weight_decay")


def apply(patches: Patches, note: Callable[[], None], *, library: str) -> None:
    """Have each Adam and AdamW that is made be the one of `library`, until `patches` is left.

    One that is asked for what the library's does not have (amsgrad, maximize, a tensor for the learning rate) stays as
    it is, and so does a class that inherits of them.

    Raises:
        PlanError: `library` is not installed.
    """
    if find_spec(library) is None:
        raise PlanError(
            f"Can't apply the plan: it takes the optimizer of {library}, which is not installed. "
            f"Install it (`pip install {library}`), or make the plan again with `peaksight fix --apply`.",
            slug="plan-library",
        )
    for name in _CLASSES:
        cls = getattr(torch.optim, name)
        patches.set(cls, "__init__", _as_of(library, cls, note))


def _as_of(library: str, cls: Any, note: Callable[[], None]) -> Callable[..., None]:
    """What makes a `cls`: the object becomes one of the library's class, wherever the script has `cls` from."""
    make = cls.__init__
    signature = inspect.signature(make)

    @functools.wraps(make)
    def made(optimizer: Any, *args: Any, **kwargs: Any) -> None:
        bound = signature.bind(optimizer, *args, **kwargs)
        if type(optimizer) is not cls or not _has_all(bound.arguments):
            make(optimizer, *args, **kwargs)
            return
        optimizer.__class__ = getattr(import_module(f"{library}.optim"), _CLASSES[cls.__name__])
        optimizer.__init__(**{name: bound.arguments[name] for name in _PASSED_ON if name in bound.arguments})
        note()

    return made


def _has_all(given: Mapping[str, Any]) -> bool:
    """Whether the library's optimizer has all that this one is asked for."""
    return not isinstance(given.get("lr"), torch.Tensor) and not any(given.get(name) for name in _NOT_THERE)
