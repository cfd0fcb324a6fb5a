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

import torch
from torch import nn
from torch.utils.checkpoint import checkpoint

from benchmarks.times.hosts import WIDTH, Block
from benchmarks.times.measure import machine

NUM_ROUNDS = 60
NUM_WARM_UP = 10
Call = Callable[[nn.Module, torch.Tensor], torch.Tensor]


def _linears(number: int) -> nn.Module:
    return nn.Sequential(*(nn.Linear(WIDTH, WIDTH) for _ in range(number)))


# What one region holds, and how many regions there are.
REGIONS: dict[str, tuple[Callable[[], nn.Module], int]] = {
    "linear": (lambda: _linears(1), 48),
    "4 linears": (lambda: _linears(4), 32),
    "10 linears": (lambda: _linears(10), 24),
    "40 linears": (lambda: _linears(40), 6),
    "block": (Block, 24),
    "3 blocks": (lambda: nn.Sequential(*(Block() for _ in range(3))), 8),
}


def seconds(regions: nn.ModuleList, call: Call) -> tuple[float, float]:
    """Of the host: those of a forward and of its backward."""
    x = torch.randn(2, 32, WIDTH, device="cuda", requires_grad=True)
    torch.cuda.synchronize()
    began = time.perf_counter()
    for region in regions:
        x = call(region, x)
    loss = x.sum()
    ended = time.perf_counter()
    loss.backward()
    return ended - began, time.perf_counter() - ended


def num_saved(regions: nn.ModuleList) -> int:
    """The tensors that autograd saves in all regions."""
    saved: list[int] = []

    def pack(tensor: torch.Tensor) -> torch.Tensor:
        saved.append(tensor.numel())
        return tensor

    def call(region: nn.Module, x: torch.Tensor) -> torch.Tensor:
        with torch.autograd.graph.saved_tensors_hooks(pack, lambda tensor: tensor):
            return region(x)

    seconds(regions, call)
    return len(saved)


def measure(make: Callable[[], nn.Module], number: int) -> dict[str, float]:
    """Median seconds that checkpointing adds to a step of `number` regions, and what they save."""
    regions = nn.ModuleList(make() for _ in range(number)).to("cuda")
    extra = []
    for _ in range(NUM_ROUNDS):
        forward, backward = seconds(regions, lambda region, x: region(x))
        again = seconds(regions, lambda region, x: checkpoint(region, x, use_reentrant=False))
        extra.append(sum(again) - 2 * forward - backward)
    return {"regions": number, "saved": num_saved(regions), "extra_seconds": median(extra[NUM_WARM_UP:])}


def main() -> None:
    """Write what was measured."""
    found = {name: measure(*of) for name, of in REGIONS.items()}
    Path(sys.argv[1]).write_text(json.dumps({"machine": machine(), "regions": found}, indent=1) + "\n")
    print(json.dumps(found))


if __name__ == "__main__":
    main()
