"""LBFGS, whose memory is its history of directions: it depends on values that nobody knows."""

from collections.abc import Callable, Sequence
from functools import wraps
from typing import Any

import torch
from torch.overrides import TorchFunctionMode

from peaksight.overlays.patches import Patches
from peaksight.virtual_gpu.tensors.values import expect


def install(patches: Patches) -> None:
    """Have every step of LBFGS go as for a loss that falls, until `patches` is left: its history fills."""
    patches.set(torch.optim.LBFGS, "step", _descending(torch.optim.LBFGS.step))


def _descending(step: Callable[..., Any]) -> Callable[..., Any]:
    @wraps(step)
    def descending(optimizer: Any, closure: Callable[[], Any]) -> Any:
        with _Descent() as descent:
            return step(optimizer, descent.outside(closure))

    return descending


class _Descent(TorchFunctionMode):
    """What is compared in a step of LBFGS, which only reads tensors that way.

    Curvature is taken to be above its positive bound, `ys > 1e-10`, and the slope not to be above its negative one,
    `gtd > -tolerance_change`. A loss that stood still would end the iterations, so each is below the last.
    """

    def __init__(self) -> None:
        super().__init__()
        self._num_losses = 0
        self._is_outside = False

    def __torch_function__(
        self, func: Any, types: Any, args: Sequence[Any] = (), kwargs: dict[str, Any] | None = None
    ) -> Any:
        out = func(*args, **(kwargs or {}))
        if func is torch.Tensor.gt and not self._is_outside and isinstance(args[1], float):
            return expect(out, args[1] > 0)
        return out

    def outside(self, closure: Callable[[], Any]) -> Callable[[], Any]:
        """`closure`, whose own comparisons are none of the step's."""

        def evaluate() -> Any:
            self._is_outside = True
            try:
                loss = closure()
            finally:
                self._is_outside = False
            self._num_losses += 1
            return expect(loss, 1 / self._num_losses) if isinstance(loss, torch.Tensor) else loss

        return evaluate
