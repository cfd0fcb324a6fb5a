"""Builders of small captures and reports for the tests."""

from dataclasses import replace

from peaksight.allocator.caching import CachingAllocator
from peaksight.records import (
    Allocation,
    Capture,
    DeviceReport,
    Failure,
    Gpu,
    Holder,
    OutOfMemory,
    Peak,
    Phase,
    Report,
    Role,
    StepPeak,
    StepReport,
    Versions,
)
from peaksight.units import GIB, MIB

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


def failure_of(num_bytes, *, tick, **about):
    """What the card could not serve, of `num_bytes`: in the forward of step 1 unless `about` says otherwise."""
    facts = {
        "message": "CUDA out of memory.",
        "allocated_bytes": 0,
        "reserved_bytes": 0,
        "step": 1,
        "phase": Phase.FORWARD,
        "op": "aten::empty",
        "module": "",
        "source": "train.py:1",
        "library": "",
        "backward_source": "",
    }
    return Failure(tick=tick, requested_bytes=num_bytes, **(facts | about))


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
    events += [(a.reusable, a) for a in allocations if a.reusable is not None]
    for tick, allocation in sorted(events, key=lambda event: event[0]):
        if tick == allocation.died:
            allocator.free_requested(blocks[allocation.born])
        if tick == (allocation.reusable or allocation.died):
            allocator.free_completed(blocks.pop(allocation.born))
        if tick != allocation.born:
            continue
        block = blocks[allocation.born] = allocator.malloc(allocation.requested_bytes, allocation.stream)
        sizes[allocation.born] = block.size
        if allocator.allocated_bytes > peaks["peak_allocated_bytes"]:
            peaks |= {"peak_tick": tick, "peak_allocated_bytes": allocator.allocated_bytes}
        peaks["peak_reserved_bytes"] = max(peaks["peak_reserved_bytes"], allocator.reserved_bytes)
        peaks["peak_requested_bytes"] = max(peaks["peak_requested_bytes"], allocator.requested_bytes)
    peaks["peak_active_bytes"] = peaks["peak_allocated_bytes"]
    return tuple(replace(a, allocated_bytes=sizes[a.born]) for a in allocations), peaks


def holder_of(num_bytes, category, *, count=1, module="", source="train.py:1", op="aten::empty", **about):
    """One row of a live set, of the forward of step 1 unless `about` says otherwise."""
    moment = {"phase": Phase.FORWARD, "step": 1} | about
    return Holder(bytes=num_bytes, count=count, category=category, module=module, source=source, op=op, **moment)


def report_of(*holders, **about):
    """A report whose live set is `holders`: it fits an H100 and ran steadily, unless `about` says otherwise."""
    allocated = sum(holder.bytes for holder in holders)
    steps = (StepReport(peak_allocated_bytes=allocated, peak_reserved_bytes=allocated + MIB),) * 3
    facts = {
        "schema": "peaksight.report/1",
        "argv": ("train.py",),
        "gpu": Gpu(name="NVIDIA H100 80GB HBM3", total_bytes=80 * GIB, usable_bytes=79 * GIB),
        "torch": "2.14.1",
        "device_rules": "2.11.0+cu130",
        "fits": True,
        "peak": peak_of(allocated, reserved_bytes=allocated + MIB),
        "oom": None,
        "steps": steps,
        "findings": None,
        "not_simulated": (),
        "not_reached": None,
        "writes": (),
        "finished": "steady",
        "script_exit": 0,
        "seconds": 2.5,
    }
    return Report(live_at_peak=tuple(sorted(holders, key=lambda h: -h.bytes)), **(facts | about))


def peak_of(allocated_bytes, *, reserved_bytes, **about):
    """A peak in the backward of step 2, at `train.py:88`."""
    facts = {"process_bytes": None, "step": 2, "phase": Phase.BACKWARD, "at": "train.py:88"}
    return Peak(
        allocated_bytes=allocated_bytes,
        reserved_bytes=reserved_bytes,
        requested_bytes=allocated_bytes,
        **(facts | about),
    )


def device_of(index, allocated_bytes, *, usable_bytes, **about):
    """A card that fits, of which `usable_bytes` can be used, unless `about` says otherwise."""
    peak = peak_of(allocated_bytes, reserved_bytes=allocated_bytes + MIB)
    return DeviceReport(index=index, usable_bytes=usable_bytes, **({"fits": True, "peak": peak, "oom": None} | about))


def oom_of(requested_bytes, **about):
    """An out-of-memory error in the backward of step 1, at `train.py:88`."""
    facts = {"step": 1, "phase": Phase.BACKWARD, "at": "train.py:88", "backward_at": None, "message": ""}
    sizes = {"requested_bytes": requested_bytes, "allocated_bytes": 0, "reserved_bytes": 0, "free_bytes": 10 * MIB}
    return OutOfMemory(**(sizes | facts | about))
