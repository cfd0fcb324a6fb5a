"""How many backward passes the script makes, and how many samples its loaders give it."""

from collections.abc import Callable, Mapping, Sequence
from functools import wraps
from types import ModuleType
from typing import Any

from peaksight.overlays.late_imports import change_modules
from peaksight.overlays.patches import Patches


def follow_passes(patches: Patches, on_backward: Callable[[], None], on_batch: Callable[[int], None]) -> None:
    """Call `on_backward` as each backward pass begins, `on_batch` with the rows of each batch; until `patches` is left.

    A pass within another one, as reentrant checkpointing makes, is none of its own.
    """
    depth = 0

    def passes(module: ModuleType) -> None:
        run = module.backward

        @wraps(run)
        def backward(*args: Any, **kwargs: Any) -> Any:
            nonlocal depth
            if not depth:
                on_backward()
            depth += 1
            try:
                return run(*args, **kwargs)
            finally:
                depth -= 1

        patches.set(module, "backward", backward)

    def batches(module: ModuleType) -> None:
        from peaksight.live.torch_private import loader_iterator  # with the script's torch

        kind = loader_iterator(module)
        if kind is None:
            return
        advance = kind.__next__

        @wraps(advance)
        def following(iterator: Any) -> Any:
            batch = advance(iterator)
            on_batch(rows_of(batch))
            return batch

        patches.set(kind, "__next__", following)

    change_modules(patches, {"torch.autograd": passes, "torch.utils.data.dataloader": batches})


def rows_of(batch: Any) -> int:
    """The first size of the first tensor in `batch`, 0 where there is none."""
    shape = getattr(batch, "shape", None)
    if shape is not None:
        return int(shape[0]) if len(shape) else 0
    inner = batch.values() if isinstance(batch, Mapping) else batch if isinstance(batch, Sequence) else ()
    return 0 if isinstance(batch, str) else next((rows for each in inner if (rows := rows_of(each))), 0)
