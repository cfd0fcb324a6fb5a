"""`python -m benchmarks.times.policies`: what a policy of selective checkpointing costs the host.

It is asked for every operator, in the forward and again when that is repeated.

Without a card: torch calls a Python function, whatever the tensors are on. How fast a machine runs Python tell the
calls of a module that does nothing, which were timed beside the card too.
"""

import json
import time
from collections.abc import Callable
from datetime import date
from functools import partial
from pathlib import Path
from typing import Any

import torch
from torch import nn
from torch.utils.checkpoint import CheckpointPolicy, checkpoint, create_selective_checkpoint_contexts

from benchmarks.times.hosts import WIDTH, Block

FILE = Path(__file__).with_name("measured") / "policies.json"
NUM_BLOCKS = 24
NUM_ROUNDS = 25
NUM_IDENTITIES = 500


def seconds(blocks: nn.ModuleList, call: Callable[[nn.Module, torch.Tensor], torch.Tensor]) -> tuple[float, float]:
    """Of the processor, those of a forward and of its backward."""
    x = torch.randn(1, 4, WIDTH, requires_grad=True)
    began = time.process_time()
    for block in blocks:
        x = call(block, x)
    ended = time.process_time()
    x.sum().backward()
    return ended - began, time.process_time() - ended


def num_asked(blocks: nn.ModuleList) -> int:
    """How often a policy is asked in a forward and its recomputation."""
    asked: list[Any] = []

    def policy(context: Any, operator: Any, *args: Any, **kwargs: Any) -> CheckpointPolicy:
        asked.append(operator)
        return CheckpointPolicy.PREFER_RECOMPUTE

    contexts = partial(create_selective_checkpoint_contexts, policy)
    seconds(blocks, lambda block, x: checkpoint(block, x, use_reentrant=False, context_fn=contexts))
    return len(asked)


def _policy(context: Any, operator: Any, *args: Any, **kwargs: Any) -> CheckpointPolicy:
    return CheckpointPolicy.PREFER_RECOMPUTE


def main() -> None:
    """Measure in turns; the best of each counts."""
    torch.set_num_threads(1)
    blocks = nn.ModuleList(Block() for _ in range(NUM_BLOCKS))
    again, asked = [], []
    contexts = partial(create_selective_checkpoint_contexts, _policy)
    for _ in range(NUM_ROUNDS):
        again.append(seconds(blocks, lambda block, x: checkpoint(block, x, use_reentrant=False)))
        asked.append(seconds(blocks, lambda block, x: checkpoint(block, x, use_reentrant=False, context_fn=contexts)))
    identities = nn.ModuleList([nn.Sequential(*(nn.Identity() for _ in range(NUM_IDENTITIES)))])
    call_seconds = min(seconds(identities, lambda module, x: module(x))[0] for _ in range(NUM_ROUNDS)) / NUM_IDENTITIES
    policies = _best(asked) - _best(again)
    found = {"torch": torch.__version__, "date": str(date.today()), "call_seconds": call_seconds}
    FILE.write_text(json.dumps(found | {"num_asked": num_asked(blocks), "policy_seconds": policies}, indent=1) + "\n")


def _best(times: list[tuple[float, float]]) -> float:
    return sum(min(phase) for phase in zip(*times, strict=True))


if __name__ == "__main__":
    main()
