"""Gradients of DistributedDataParallel that are views of its buckets, not copies beside them."""

import functools
import inspect
from collections.abc import Callable
from typing import Any

from torch.nn.parallel import DistributedDataParallel

from peaksight.overlays.patches import Patches


def apply(patches: Patches, note: Callable[[], None]) -> None:
    """Make every DistributedDataParallel with `gradient_as_bucket_view=True` until `patches` is left."""
    make: Any = DistributedDataParallel.__init__
    signature = inspect.signature(make)

    @functools.wraps(make)
    def made(*args: Any, **kwargs: Any) -> None:
        bound = signature.bind(*args, **kwargs)
        bound.arguments["gradient_as_bucket_view"] = True
        note()
        make(*bound.args, **bound.kwargs)

    patches.set(DistributedDataParallel, "__init__", made)
