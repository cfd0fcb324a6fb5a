"""The allocator's events of one case, on a real card and on the virtual one.

An event is a number of bytes: taken where it is positive (as requested), given back where it is negative.
"""

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any, Protocol

import torch
from torch.utils._pytree import tree_leaves

from benchmarks.operators.cases import Case

MAX_EVENTS = 20_000


class Recorder(Protocol):
    """Collects the events inside a `with recorder.events() as events`."""

    def events(self) -> Any:
        """A context manager that yields the list, complete once it is left."""


class RealCard:
    """The allocator's own history."""

    @contextmanager
    def events(self) -> Iterator[list[int]]:
        """Of the allocator of the current device."""
        events: list[int] = []
        torch.cuda.synchronize()
        torch.cuda.memory._record_memory_history("all", context=None, max_entries=MAX_EVENTS, clear_history=True)
        yield events
        torch.cuda.synchronize()
        trace = torch.cuda.memory._snapshot()["device_traces"][0]
        torch.cuda.memory._record_memory_history(None)
        events += [e["size"] if e["action"] == "alloc" else -e["size"] for e in trace if e["action"] in _ACTIONS]


_ACTIONS = ("alloc", "free_completed")


class VirtualCard:
    """The births and deaths in the ledger of a VirtualGpu."""

    def __init__(self, gpu: Any) -> None:
        """Read the ledger of `gpu`."""
        self._ledger = gpu.ledger

    @contextmanager
    def events(self) -> Iterator[list[int]]:
        """Of the simulated allocator."""
        events: list[int] = []
        first = self._ledger._tick
        yield events
        taken = [(birth.born, birth.requested_bytes) for birth in self._ledger.births]
        freed = [(birth.died, -birth.requested_bytes) for birth in self._ledger.births if birth.died is not None]
        events += [size for tick, size in sorted(taken + freed) if tick > first]


def record(case: Case, recorder: Recorder) -> dict:
    """What `case` allocates: `forward`, `backward` (None without one), and `result`, the bytes of its outputs."""
    run = case.prepare()
    with recorder.events() as forward:
        out = run()
    outputs = [leaf for leaf in tree_leaves(out) if isinstance(leaf, torch.Tensor)]
    backward = _backward(outputs, recorder)
    return {"forward": forward, "backward": backward}


def _backward(outputs: list[torch.Tensor], recorder: Recorder) -> list[int] | None:
    outputs = [output for output in outputs if output.requires_grad and output.layout == torch.strided]
    if not outputs:
        return None
    gradients = [torch.ones_like(output) for output in outputs]
    with recorder.events() as backward:
        torch.autograd.backward(outputs, gradients)
    return backward


def warm_up() -> None:
    """Make the handles and workspaces that stay: those of cuBLAS on both threads and in every type."""
    for dtype in (torch.float32, torch.float16, torch.bfloat16, torch.float64):
        matrix = torch.ones(64, 64, device="cuda", dtype=dtype, requires_grad=True)
        bias = torch.ones(64, device="cuda", dtype=dtype, requires_grad=True)
        torch.nn.functional.linear(matrix, matrix, bias).sum().backward()


def peak(events: list[int]) -> int:
    """The highest sum on the way."""
    height = highest = 0
    for event in events:
        height += event
        highest = max(highest, height)
    return highest


def attempt(case: Case, recorder: Recorder, times: int) -> dict:
    """`record` the `times`-th time, or the error."""
    try:
        for _ in range(times):
            events = record(case, recorder)
        return events
    except Exception as error:
        return {"error": f"{type(error).__name__}: {str(error)[:160]}"}
