"""PyTorch's profilers: of a card that is not there they record what the host does, and ask no driver for events."""

from collections.abc import Callable
from typing import Any

from torch.autograd import profiler

from peaksight.overlays.patches import Patches


def install(patches: Patches) -> None:
    """Have every profiler record the host alone, and none annotate for NVTX, until `patches` is left."""
    patches.set(profiler.profile, "__init__", _of_the_host(profiler.profile.__init__))
    patches.set(profiler.emit_nvtx, "__enter__", lambda annotations: annotations)
    patches.set(profiler.emit_nvtx, "__exit__", lambda annotations, *raised: False)


def _of_the_host(begin: Callable[..., None]) -> Callable[..., None]:
    def init(self: Any, *args: Any, **kwargs: Any) -> None:
        if kwargs.get("use_device") == "cuda":
            kwargs |= {"use_device": None, "use_cpu": True}
        begin(self, *args, **kwargs)

    return init
