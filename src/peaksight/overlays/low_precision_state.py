"""Adam and AdamW of torchao, whose state has 8 bits a number, in place of torch's."""

import inspect
from collections.abc import Callable
from importlib import import_module
from typing import Any

import torch

from peaksight.errors import PlanError
from peaksight.overlays.patches import Patches

_NAMES = ("Adam", "AdamW")
# Arguments that say how a step is computed, and not what.
_HOW = {"foreach", "fused", "capturable"}


def apply(patches: Patches, note: Callable[[], None]) -> None:
    """Make `Adam8bit` and `AdamW8bit` of torchao where a script asks for `Adam` and `AdamW`, until `patches` is left.

    Raises:
        PlanError: torchao is not installed. So does making an optimizer with arguments that torchao's has not.
    """
    try:
        library = import_module("torchao.optim")
    except ImportError as error:
        raise PlanError(
            "Can't apply the plan: its optimizers are those of torchao, which is not installed. Install it, or make a "
            "plan without it by `peaksight fix`.",
            slug="plan-change",
        ) from error
    for name in _NAMES:
        made = _taking_all_arguments(getattr(library, f"{name}8bit"), name, note)
        patches.set_wherever_imported(name, made, of=torch.optim, also_as=name)


def _taking_all_arguments(cls: Any, name: str, note: Callable[[], None]) -> type:
    """`cls`, made with the arguments of torch's `name`: those without a meaning here are left out."""
    known = inspect.signature(cls).parameters

    def __init__(self: Any, params: Any, *args: Any, **kwargs: Any) -> None:
        unknown = {key: value for key, value in kwargs.items() if key not in known}
        lost = [key for key, value in unknown.items() if value and key not in _HOW]
        if lost:
            raise PlanError(
                f"Can't apply the plan: {cls.__name__} has no {', '.join(lost)}, which {name} is made with. Make "
                "a plan without it by `peaksight fix`.",
                slug="plan-change",
            )
        cls.__init__(self, params, *args, **{key: value for key, value in kwargs.items() if key in known})
        note()

    return type(cls.__name__, (cls,), {"__init__": __init__, "__module__": cls.__module__})
