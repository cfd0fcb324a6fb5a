"""GradScaler: it skips a step whose gradients are not finite, which only values tell. Here none is skipped."""

from collections.abc import Callable
from functools import wraps
from typing import Any

from torch.amp import GradScaler

from peaksight.overlays.patches import Patches


def install(patches: Patches, note_skipped: Callable[[], None]) -> None:
    """Until `patches` is left, `note_skipped` is told of steps that a real run may skip and that make a state here.

    The state of an optimizer that skips its first steps is born that much later, and no memory is taken earlier.
    """
    patches.set(GradScaler, "step", _noting(GradScaler.step, note_skipped))


def _noting(step: Callable[..., Any], note_skipped: Callable[[], None]) -> Callable[..., Any]:
    @wraps(step)
    def noting(scaler: GradScaler, optimizer: Any, *args: Any, **kwargs: Any) -> Any:
        had_state = bool(optimizer.state)
        result = step(scaler, optimizer, *args, **kwargs)
        if scaler.is_enabled() and optimizer.state and not had_state:
            note_skipped()
        return result

    return noting
