"""A run as the pickle of `torch.cuda.memory._snapshot()`, for pytorch.org/memory_viz and torch/cuda/_memory_viz.py.

Mirrors `THCPModule_memorySnapshot` of torch/csrc/cuda/Module.cpp. What the viewer has no field for stands where it
shows it: category, module and tensor in `user_metadata` and in frames, the category also in `category`, by which it
colours.
"""

import os
import pickle
from collections.abc import Iterator, Sequence
from functools import cache
from typing import Any

from peaksight.records import Allocation, Capture, Category, Failure, Phase
from peaksight.records.memory_trace import NO_ROW, MemoryTrace, TracedBlock, TracedEvent, TracedSegment

# The viewer reads protocols 2 to 4.
_PROTOCOL = 4
_DEFAULT_POOL = (0, 0)
# The viewer fails on categories without this one.
_UNKNOWN = "unknown"
# What C++ writes; torch's documentation says `active_awaiting_free`.
_STATES = {"active_awaiting_free": "active_pending_free"}
_PACKAGES = "site-packages/"
# What runs in these phases is in every such stack on a card; its line is not known.
_PHASE_FRAMES = {
    Phase.BACKWARD: ("torch/autograd/graph.py", "_engine_run_backward"),
    Phase.OPTIMIZER: ("torch/optim/optimizer.py", "profile_hook_step"),
    Phase.SAVE: ("torch/serialization.py", "save"),
}
_IN_MODULE = ("torch/nn/modules/module.py", "_call_impl")

_Dict = dict[str, Any]
_Frames = list[_Dict]


def snapshot_pickle(traces: Sequence[MemoryTrace]) -> bytes:
    """The snapshot of a process that used the cards of `traces`; it holds numbers, texts, lists and dictionaries."""
    devices = [_Device(trace) for trace in traces]
    events = {device.index: list(device.events()) for device in devices}
    snapshot = {
        "segments": [segment for device in devices for segment in device.segments()],
        "device_traces": [events.get(index, []) for index in range(max(events, default=-1) + 1)],
        "allocator_settings": devices[0].settings if devices else {},
        "external_annotations": [],
    }
    return pickle.dumps(snapshot, _PROTOCOL)


class _Device:
    """The dictionaries of one card. Equal stacks, frames and texts are the same objects, which keeps the file small."""

    def __init__(self, trace: MemoryTrace) -> None:
        self.index = trace.capture.device
        self.settings = trace.settings
        self._trace = trace
        self._stacks = _Stacks(trace.capture)

    def events(self) -> Iterator[_Dict]:
        """The entries of the trace. When they happened is not known, only their order."""
        return map(self._event, self._trace.events)

    def segments(self) -> Iterator[_Dict]:
        """What the allocator holds in the end."""
        return map(self._segment, self._trace.segments)

    def _event(self, event: TracedEvent) -> _Dict:
        is_oom = event.action == "oom"
        about = self._of_failure(event.row) if is_oom else self._of_allocation(event.row)
        return {
            "action": event.action,
            "device_free" if is_oom else "addr": event.address,
            "size": event.size_bytes,
            "stream": event.stream,
            "compile_context": "",
            "pool_id": _DEFAULT_POOL,
        } | about

    def _of_allocation(self, row: int) -> _Dict:
        if row == NO_ROW:
            return {"category": _UNKNOWN, "user_metadata": "", "frames": self._stacks.nowhere}
        allocation, category = self._trace.capture.allocations[row], self._trace.categories[row]
        return {
            "category": category.value,
            "user_metadata": _metadata(category, allocation.module, allocation.tensor),
            "frames": self._stacks.of_allocation(allocation, category),
        }

    def _of_failure(self, row: int) -> _Dict:
        failure = self._trace.capture.failures[row]
        return {
            "category": _UNKNOWN,
            "user_metadata": failure.message,
            "frames": self._stacks.of_failure(failure),
        }

    def _segment(self, segment: TracedSegment) -> _Dict:
        blocks = [self._block(block) for block in segment.blocks]
        active = [block for block in blocks if block["state"] != "inactive"]
        return {
            "device": self.index,
            "address": segment.address,
            "total_size": segment.size_bytes,
            "allocated_size": sum(block["size"] for block in active if block["state"] == "active_allocated"),
            "active_size": sum(block["size"] for block in active),
            "requested_size": sum(block["requested_size"] for block in active),
            "stream": segment.stream,
            "segment_type": segment.pool,
            "segment_pool_id": _DEFAULT_POOL,
            "is_expandable": segment.is_expandable,
            "frames": self._stacks.nowhere,
            "blocks": blocks,
        }

    def _block(self, block: TracedBlock) -> _Dict:
        return {
            "address": block.address,
            "size": block.size_bytes,
            "requested_size": block.requested_bytes,
            "state": _STATES.get(block.state, block.state),
        } | self._of_allocation(block.row)


class _Stacks:
    """Stacks of one capture, innermost frame first: library, script, what runs, and the category last."""

    def __init__(self, capture: Capture) -> None:
        self.nowhere: _Frames = []
        self._script = os.path.basename(capture.argv[0]) if capture.argv else ""
        self._frame = cache(_frame)
        self._stack = cache(self._of)

    def of_allocation(self, allocation: Allocation, category: Category) -> _Frames:
        """Where `allocation` was made."""
        a = allocation
        in_module = a.module and (a.phase in (Phase.FORWARD, Phase.EVALUATION) or self._is_recomputed(a))
        return self._stack(a.library, a.source, a.op, a.module, a.phase, a.step, bool(in_module), category.value)

    def of_failure(self, failure: Failure) -> _Frames:
        """Where `failure` was raised."""
        f = failure
        return self._stack(f.library, f.source, f.op, f.module, f.phase, f.step, f.phase is Phase.FORWARD, _UNKNOWN)

    def _is_recomputed(self, allocation: Allocation) -> bool:
        return allocation.phase is Phase.BACKWARD and allocation.grad_enabled

    def _of(
        self, library: str, source: str, op: str, module: str, phase: Phase, step: int, in_module: bool, category: str
    ) -> _Frames:
        places = [(_PACKAGES + library, op)] if library else []
        if source:
            places.append((source, f"{phase.value} of step {step}"))
        if in_module:
            places.append((_PACKAGES + _IN_MODULE[0], _IN_MODULE[1]))
        if phase in _PHASE_FRAMES:
            places.append((_PACKAGES + _PHASE_FRAMES[phase][0], _PHASE_FRAMES[phase][1]))
        if source and self._script.endswith(".py"):
            places.append((self._script, "<module>"))
        places += [("module", module)] if module else []
        return [self._frame(*place) for place in [*places, ("category", category)]]


@cache
def _metadata(category: Category, module: str, tensor: str) -> str:
    return " | ".join(part for part in (category.value, module, tensor) if part)


def _frame(place: str, name: str) -> _Dict:
    """A frame at `train.py:88`; without a line it is 0."""
    filename, _, line = place.rpartition(":")
    if filename and line.isdigit():
        return {"filename": filename, "line": int(line), "name": name}
    return {"filename": place, "line": 0, "name": name}
