"""The virtual GPU: runs an unmodified script as if the chosen card were in this machine."""

from typing import TYPE_CHECKING, Any

from peaksight.extras import check_torch
from peaksight.virtual_gpu.elsewhere import simulate_elsewhere

if TYPE_CHECKING:
    from peaksight.virtual_gpu.simulation import simulate

__all__ = ["simulate", "simulate_elsewhere"]


def __getattr__(name: str) -> Any:
    """Load `simulate`, and torch with it, when it is asked for: `script/` does without."""
    if name == "simulate":
        check_torch()
        from peaksight.virtual_gpu.simulation import simulate

        return simulate
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
