"""Settings of models of transformers, changed when a model is first called."""

from collections.abc import Callable
from typing import Any
from weakref import WeakSet

from torch import nn
from torch.nn.modules.module import register_module_forward_pre_hook

from peaksight.overlays.patches import Patches


def apply_attention(patches: Patches, note: Callable[[], None], *, implementation: str = "sdpa") -> None:
    """Give `implementation` of attention to every model that has it, at its first call until `patches` is left."""

    def change(model: Any) -> None:
        config = getattr(model, "config", None)
        before = getattr(config, "_attn_implementation", implementation)
        if hasattr(model, "set_attn_implementation") and before != implementation:
            model.set_attn_implementation(implementation)
            note()

    _at_first_call(patches, change)


def apply_no_cache(patches: Patches, note: Callable[[], None]) -> None:
    """Have models keep no keys and values for later positions, unless a call asks for it."""

    def change(model: nn.Module) -> None:
        for module in model.modules():
            config = getattr(module, "config", None)
            if getattr(config, "use_cache", False):
                patches.set(config, "use_cache", False)
                note()

    _at_first_call(patches, change)


def _at_first_call(patches: Patches, change: Callable[[nn.Module], None]) -> None:
    """Call `change` with each module that is called from outside of those that it was called with."""
    seen: WeakSet[nn.Module] = WeakSet()

    def called(module: nn.Module, args: object) -> None:
        if module not in seen:
            change(module)
            seen.update(module.modules())

    patches.callback(register_module_forward_pre_hook(called).remove)
