"""`torch.cuda.memory._snapshot()`: the segments, blocks and events of the allocator, in torch's own dictionaries.

Mirrors `THCPModule_memorySnapshot` of torch/csrc/cuda/Module.cpp.
"""

from collections.abc import Sequence
from typing import Any

from peaksight.allocator import CachingAllocator
from peaksight.allocator.blocks import ACTIVE_ALLOCATED, ACTIVE_AWAITING_FREE, INACTIVE, Block
from peaksight.allocator.segments import Segment
from peaksight.virtual_gpu.memory_history.history import History, TraceEntry
from peaksight.virtual_gpu.memory_history.stacks import Frames, Stack
from peaksight.virtual_gpu.torch_private import SNAPSHOTS_HAVE_HOST_MEMORY

DEFAULT_POOL = (0, 0)
# What torch calls them here: its documentation says `active_awaiting_free`, C++ writes `active_pending_free`.
_STATES = {
    ACTIVE_ALLOCATED: "active_allocated",
    ACTIVE_AWAITING_FREE: "active_pending_free",
    INACTIVE: "inactive",
}


def memory_snapshot(
    devices: Sequence[tuple[CachingAllocator, History | None]],
    *,
    settings: dict[str, Any],
    pool: tuple[int, int] = DEFAULT_POOL,
    traces: bool = True,
) -> dict[str, Any]:
    """The state of the allocators of all `devices`, and with `traces` what their histories recorded.

    Only the default pool has segments.
    """
    frames = Frames()
    snapshots = [_Snapshot(device, history, frames) for device, (_, history) in enumerate(devices)]
    entries = [list(history.entries) if history is not None else [] for _, history in devices]
    for allocator, history in devices:
        if history is not None:
            history.snapshot_taken(allocator.active_bytes)
    return {
        "segments": [
            snapshot.segment(segment)
            for snapshot, (allocator, _) in zip(snapshots, devices, strict=True)
            if pool == DEFAULT_POOL
            for segment in allocator.segments()
        ],
        "device_traces": [
            [snapshot.entry(entry) for entry in own] for snapshot, own in zip(snapshots, entries, strict=True) if traces
        ],
        "allocator_settings": settings,
        "external_annotations": [annotation for snapshot in snapshots for annotation in snapshot.annotations()],
        **_host_memory(),
    }


class _Snapshot:
    """The dictionaries of one device in a snapshot."""

    def __init__(self, device: int, history: History | None, frames: Frames) -> None:
        self._device = device
        self._history = history
        self._frames = frames

    def annotations(self) -> list[dict[str, Any]]:
        """What the script or torch named, with its begin and end."""
        named = [] if self._history is None else self._history.annotations
        return [{"name": a.name, "stage": a.stage, "device": self._device, "time_us": a.time_us} for a in named]

    def segment(self, segment: Segment) -> dict[str, Any]:
        blocks = segment.blocks
        allocated = [block for block in blocks if block.state is ACTIVE_ALLOCATED]
        active = [block for block in blocks if block.state is not INACTIVE]
        made_at = self._history.segment_stack(segment.address) if self._history is not None else None
        return {
            "device": self._device,
            "address": segment.address,
            "total_size": segment.total_size,
            "allocated_size": sum(block.size for block in allocated),
            "active_size": sum(block.size for block in active),
            "requested_size": sum(block.requested_size for block in active),
            "stream": segment.stream,
            "segment_type": segment.pool,
            "segment_pool_id": DEFAULT_POOL,
            "is_expandable": segment.is_expandable,
            "frames": self._of(made_at),
            "blocks": [self._block(block) for block in blocks],
        }

    def entry(self, entry: TraceEntry) -> dict[str, Any]:
        """Without `frames` where the context that was asked for has none."""
        return {
            "action": entry.action,
            "device_free" if entry.action == "oom" else "addr": entry.addr,
            "size": entry.size,
            "stream": entry.stream,
            "time_us": entry.time_us,
            "compile_context": "",
            "user_metadata": entry.user_metadata,
            "pool_id": DEFAULT_POOL,
        } | ({} if entry.stack is None else {"frames": self._of(entry.stack)})

    def _block(self, block: Block) -> dict[str, Any]:
        made_at = self._history.block_stack(block) if self._history is not None else None
        return {
            "address": block.address,
            "size": block.size,
            "requested_size": block.requested_size,
            "state": _STATES[block.state],
            "frames": self._of(made_at),
        }

    def _of(self, stack: Stack | None) -> list[Any]:
        return self._frames.of(stack or ())


def _host_memory() -> dict[str, Any]:
    """Pinned memory is host memory like any other here, and not recorded."""
    return {"host_segments": [], "host_traces": []} if SNAPSHOTS_HAVE_HOST_MEMORY else {}
