"""Builders of small captures for the tests."""

from dataclasses import replace

from peaksight.allocator.caching import CachingAllocator
from peaksight.records import Allocation, Capture, Phase, Role, StepPeak, Versions

PEAKS = ("peak_tick", "peak_allocated_bytes", "peak_reserved_bytes", "peak_requested_bytes", "peak_active_bytes")


def allocation_of(num_bytes, *, born, died=None, **about):
    """One allocation of `num_bytes` on the default stream, in the forward of step 1 unless `about` says otherwise."""
    facts = {
        "step": 1,
        "phase": Phase.FORWARD,
        "role": Role.UNMARKED,
        "grad_enabled": True,
        "op": "aten::empty",
        "module": "",
        "source": "train.py:1",
        "library": "",
        "stream": 0,
    }
    return Allocation(born=born, died=died, requested_bytes=num_bytes, allocated_bytes=num_bytes, **(facts | about))


def step_of(step, first_tick, last_tick, backward_began=(), peak_allocated_bytes=0, peak_reserved_bytes=0):
    """One step from `first_tick` to `last_tick`."""
    return StepPeak(
        step=step,
        first_tick=first_tick,
        last_tick=last_tick,
        backward_began=tuple(backward_began),
        peak_allocated_bytes=peak_allocated_bytes,
        peak_reserved_bytes=peak_reserved_bytes,
    )


def capture_of(*allocations, steps=(), **about):
    """A capture of `allocations`; its block sizes and peaks are those that the caching allocator gives them."""
    allocations, peaks = _replayed(allocations)
    facts = {
        "argv": ("train.py",),
        "gpu": "h100-80gb",
        "versions": Versions(installed="2.14.1", device_rules="2.11.0+cu130"),
        "not_simulated": (),
        "writes": (),
        "finished": "steady",
        "script_exit": 0,
        "seconds": 2.5,
    }
    return Capture(allocations=allocations, steps=tuple(steps), **(peaks | facts | about))


def _replayed(allocations):
    allocator, blocks, sizes = CachingAllocator(), {}, {}
    peaks = dict.fromkeys(PEAKS, 0)
    events = [(a.born, a) for a in allocations] + [(a.died, a) for a in allocations if a.died is not None]
    for tick, allocation in sorted(events, key=lambda event: event[0]):
        if tick == allocation.died:
            allocator.free(blocks.pop(allocation.born))
            continue
        block = blocks[allocation.born] = allocator.malloc(allocation.requested_bytes, allocation.stream)
        sizes[allocation.born] = block.size
        if allocator.allocated_bytes > peaks["peak_allocated_bytes"]:
            peaks |= {"peak_tick": tick, "peak_allocated_bytes": allocator.allocated_bytes}
        peaks["peak_reserved_bytes"] = max(peaks["peak_reserved_bytes"], allocator.reserved_bytes)
        peaks["peak_requested_bytes"] = max(peaks["peak_requested_bytes"], allocator.requested_bytes)
    peaks["peak_active_bytes"] = peaks["peak_allocated_bytes"]
    return tuple(replace(a, allocated_bytes=sizes[a.born]) for a in allocations), peaks
