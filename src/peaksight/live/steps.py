"""Has torch tell when a step ends: every optimizer has stepped, as in a simulated run."""

from collections.abc import Callable
from types import ModuleType
from typing import Any

from peaksight.overlays.late_imports import change_modules
from peaksight.overlays.passes import Passes
from peaksight.overlays.patches import Patches

_MODULE = "torch.optim.optimizer"


def follow_steps(patches: Patches, on_optimizer: Callable[[Any], None], on_step: Callable[[], None]) -> None:
    """Call `on_optimizer` with each optimizer that has stepped, and then `on_step` if that ended a step.

    Until `patches` is left; torch is not imported before the script does.
    """
    passes = Passes()

    def stepped(optimizer: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> None:
        on_optimizer(optimizer)
        if passes.ended_by(optimizer):
            on_step()

    # A compiled step calls it instead of tracing it.
    stepped._torchdynamo_disable = True  # type: ignore[attr-defined]

    def hook(module: ModuleType) -> None:
        patches.callback(module.register_optimizer_step_post_hook(stepped).remove)

    change_modules(patches, {_MODULE: hook})
