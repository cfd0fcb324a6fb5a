"""On a machine with a GPU: `python -m benchmarks.times.checkpoints FILE` measures what checkpointing costs the host.

Beside the forward that it runs again, each call of `checkpoint` takes its time, and so does each tensor that autograd
saves in one. Models so small that the card is always done first run in turns with and without it, since such a machine
is twice as slow at one moment as at the next.
"""

import json
import sys
import time
from collections.abc import Callable
from pathlib import Path
from statistics import median
from typing import Any

import torch
from torch import nn
from torch.utils.checkpoint import checkpoint

from benchmarks.times.hosts import MODELS, Block, Convolution
from benchmarks.times.measure import machine

NUM_ROUNDS = 10
NUM_WARM_UP = 3


class Checkpointed(nn.Sequential):
    """Parts that each run checkpointed where `is_on`."""

    is_on = False

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        """One after the other."""
        for part in self:
            x = checkpoint(part, x, use_reentrant=False) if self.is_on else part(x)
        return x


def _turn(model: nn.Module, is_on: bool) -> None:
    if isinstance(model, Checkpointed):
        model.is_on = is_on
        return
    model.config.use_cache = False
    if is_on:
        model.gradient_checkpointing_enable(gradient_checkpointing_kwargs={"use_reentrant": False})
    else:
        model.gradient_checkpointing_disable()


def _of_parts(name: str, make: Callable[[], nn.Module], number: int, size: int = 1) -> Callable[[], tuple[Any, Any]]:
    """`number` parts of `size`, with the loss of the model `name`."""

    def made() -> tuple[nn.Module, Callable[[nn.Module], torch.Tensor]]:
        parts = (nn.Sequential(*(make() for _ in range(size))) for _ in range(number))
        return Checkpointed(*parts), MODELS[name]()[1]

    return made


CASES: dict[str, Callable[[], tuple[Any, Any]]] = {
    "linear": _of_parts("linears", lambda: nn.Linear(64, 64), 48),
    "10 linears": _of_parts("linears", lambda: nn.Linear(64, 64), 16, 10),
    "block": _of_parts("blocks", Block, 24),
    "3 blocks": _of_parts("blocks", Block, 8, 3),
    "3 convolutions": _of_parts("convolutions", Convolution, 16, 3),
    "opt": MODELS["opt"],
    "phi": MODELS["phi"],
}


def seconds(model: nn.Module, loss_of: Callable[[nn.Module], torch.Tensor], amp: bool) -> tuple[float, float]:
    """Of the host: those of a forward and of its backward."""
    model.zero_grad()
    torch.cuda.synchronize()
    began = time.perf_counter()
    with torch.autocast("cuda", torch.bfloat16, enabled=amp):
        loss = loss_of(model)
    ended = time.perf_counter()
    loss.backward()
    return ended - began, time.perf_counter() - ended


def counts(run: Callable[[], object]) -> tuple[int, int]:
    """The checkpoints that `run` begins, in its forward and again, and the tensors that they take."""
    hooks = torch.autograd.graph.saved_tensors_hooks
    begin, found = hooks.__init__, [0, 0]

    def begin_counted(self: Any, pack: Callable[..., Any], unpack: Callable[..., Any]) -> None:
        def pack_counted(tensor: torch.Tensor) -> Any:
            found[1] += 1
            return pack(tensor)

        found[0] += 1
        begin(self, pack_counted, unpack)

    hooks.__init__ = begin_counted  # type: ignore[method-assign]
    try:
        run()
    finally:
        hooks.__init__ = begin  # type: ignore[method-assign]
    return found[0], found[1]


def measure(name: str, amp: bool) -> dict[str, Any]:
    """Median seconds of forward and backward, plain and checkpointed, and what that adds to running forward again."""
    torch.manual_seed(0)
    model, loss_of = CASES[name]()
    model = model.to("cuda").train()
    times: dict[bool, list[tuple[float, float]]] = {False: [], True: []}
    for _ in range(NUM_ROUNDS):
        for is_on, found in times.items():
            _turn(model, is_on)
            found.append(seconds(model, loss_of, amp))
    plain, again = (found[NUM_WARM_UP:] for found in times.values())
    num_begun, num_taken = counts(lambda: seconds(model, loss_of, amp))
    return {
        "begun": num_begun,
        "taken": num_taken,
        "extra_seconds": median(sum(now) - sum(was) - was[0] for was, now in zip(plain, again, strict=True)),
        "plain": [median(phase) for phase in zip(*plain, strict=True)],
        "checkpointed": [median(phase) for phase in zip(*again, strict=True)],
    }


def main() -> None:
    """Write what was measured, after each case."""
    found: dict[str, Any] = {}
    for name in CASES:
        for amp in (False, True):
            found[f"{name} {amp}"] = measure(name, amp)
            Path(sys.argv[1]).write_text(json.dumps({"machine": machine(), "cases": found}, indent=1) + "\n")
    print(json.dumps(found))


if __name__ == "__main__":
    main()
