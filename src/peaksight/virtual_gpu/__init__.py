"""The virtual GPU: runs an unmodified script as if the chosen card were in this machine."""

from typing import TYPE_CHECKING, Any

from peaksight.errors import UnsupportedError
from peaksight.extras import check_torch
from peaksight.virtual_gpu.elsewhere import simulate_elsewhere

if TYPE_CHECKING:
    from peaksight.virtual_gpu.simulation import simulate

__all__ = ["simulate", "simulate_elsewhere"]


def __getattr__(name: str) -> Any:
    """Load `simulate`, and torch with it, when it is asked for: `script/` does without."""
    if name == "simulate":
        check_torch()
        try:
            from peaksight.virtual_gpu.simulation import simulate
        except (AttributeError, ImportError) as missing:
            _refuse_release(missing)
            raise
        return simulate
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")


def _refuse_release(missing: AttributeError | ImportError) -> None:
    """UnsupportedError where it is torch that lacks a name."""
    owner = missing.name if isinstance(missing, ImportError) else getattr(missing.obj, "__name__", None)
    if str(owner).partition(".")[0] != "torch":
        return
    import torch

    raise UnsupportedError(
        f"Can't simulate on torch {torch.__version__}: {missing}. Install torch 2.13 or 2.14.", slug="torch-release"
    ) from missing
