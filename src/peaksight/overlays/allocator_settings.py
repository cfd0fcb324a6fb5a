"""Settings of the caching allocator, set before the script first uses the card."""

import os
from collections.abc import Callable

from peaksight.overlays.patches import Patches

# What PyTorch reads, the first of them that is set, and what it is called since 2.9.
_VARIABLES = ("PYTORCH_CUDA_ALLOC_CONF", "PYTORCH_ALLOC_CONF")


def apply(patches: Patches, note: Callable[[], None], *, settings: str) -> None:
    """Add `settings` (`expandable_segments:True`) to those of the environment until `patches` is left."""
    name = next((name for name in _VARIABLES if name in os.environ), _VARIABLES[0])
    before = os.environ.get(name)
    patches.callback(_restore, name, before)
    os.environ[name] = ",".join(filter(None, (before, settings)))
    note()


def _restore(name: str, before: str | None) -> None:
    if before is None:
        os.environ.pop(name, None)
    else:
        os.environ[name] = before
