"""Find wrong allocations: the live set at the predicted peak beside that of the recorded trace, size by size.

`python -m benchmarks.accuracy.live_set WORKLOAD` lists the requested sizes that one has more often than the other,
the largest difference first, each with an allocation of that size as the prediction knows it.
"""

import sys
from collections import Counter

from benchmarks.accuracy.captures import capture
from benchmarks.accuracy.workloads import trace_of, workload_named
from peaksight.allocator import read_trace
from peaksight.allocator.sizes import round_size
from peaksight.attribution.live_set import alive_at
from peaksight.records import Allocation, Capture
from peaksight.units import format_bytes


def main(name: str) -> None:
    """Print the differences of one workload."""
    measured, predicted = measured_sizes(name), capture(workload_named(name))
    sizes = Counter(allocation.requested_bytes for allocation in alive_at(predicted, predicted.peak_tick))
    print(f"at the peak: {_told(sizes)} predicted, {_told(measured)} measured")
    for size in sorted(sizes | measured, key=lambda size: -size * abs(sizes[size] - measured[size])):
        if difference := sizes[size] - measured[size]:
            print(f"{difference:+6d} x {size:>12} = {format_bytes(difference * size):>12}  {_example(predicted, size)}")


def measured_sizes(name: str) -> Counter[int]:
    """The requested sizes of the blocks alive at the first peak of the recorded trace."""
    alive: dict[int, int] = {}
    peak, at_peak, allocated = 0, Counter[int](), 0
    for action, address, num_bytes, _ in read_trace(trace_of(name)):
        if action == "alloc":
            alive[address] = num_bytes
            allocated += round_size(num_bytes)
        elif action == "free_completed" and address in alive:
            allocated -= round_size(alive.pop(address))
        if allocated > peak:
            peak, at_peak = allocated, Counter(alive.values())
    return at_peak


def _told(sizes: Counter[int]) -> str:
    return f"{format_bytes(sum(sizes.elements()))} in {sizes.total()} blocks"


def _example(predicted: Capture, size: int) -> str:
    """The last allocation of `size` before the peak."""
    of_size = [a for a in predicted.allocations if a.requested_bytes == size and a.born <= predicted.peak_tick]
    return _about(of_size[-1], predicted) if of_size else "never allocated"


def _about(allocation: Allocation, predicted: Capture) -> str:
    dead = allocation.died is not None and allocation.died <= predicted.peak_tick
    facts = (allocation.op, allocation.phase, allocation.module, allocation.source, allocation.library)
    return " ".join([*filter(None, facts), *(["(freed before)"] if dead else [])])


if __name__ == "__main__":
    main(sys.argv[1])
