"""Orders in which kernels may run: XLA takes the one with the least memory of a few."""

import heapq
from collections import defaultdict
from collections.abc import Iterator, Sequence

from peaksight.jax.fusion import Kernel
from peaksight.jax.jaxpr_graph import Graph, Value


def orders_of(kernels: Sequence[Kernel], graph: Graph) -> Iterator[Sequence[Kernel]]:
    """The order of the program, and that which always takes what leaves least alive (XLA's list scheduler)."""
    yield kernels
    yield list(_greedy(kernels, graph))


def _greedy(kernels: Sequence[Kernel], graph: Graph) -> Iterator[Kernel]:
    kept = {*graph.inputs, *graph.constants, *(value.buffer for value in graph.outputs)}
    readers: dict[Value, list[int]] = defaultdict(list)
    waiters: dict[Value, list[int]] = defaultdict(list)
    for number, kernel in enumerate(kernels):
        for value in kernel.reads - kept:
            readers[value].append(number)
        for value in kernel.after:
            waiters[value].append(number)
    made = {value for kernel in kernels for value in kernel.node.writes}
    num_missing = [len(kernel.after & made) for kernel in kernels]
    num_readers = {value: len(numbers) for value, numbers in readers.items()}

    def growth(number: int) -> int:
        kernel = kernels[number]
        freed = sum(value.bytes for value in kernel.reads if num_readers.get(value) == 1)
        return sum(value.bytes for value in kernel.writes) - freed

    ready = [(growth(number), number) for number, missing in enumerate(num_missing) if missing == 0]
    heapq.heapify(ready)
    done: set[int] = set()
    while ready:
        was, number = heapq.heappop(ready)
        if number in done:
            continue
        if (now := growth(number)) != was:
            heapq.heappush(ready, (now, number))
            continue
        done.add(number)
        kernel = kernels[number]
        yield kernel
        for value in kernel.reads & num_readers.keys():
            num_readers[value] -= 1
            if num_readers[value] == 1:  # what reads it last frees it
                ready_again = [other for other in readers[value] if num_missing[other] == 0 and other not in done]
                for other in ready_again:
                    heapq.heappush(ready, (growth(other), other))
        for value in kernel.node.writes:
            for other in waiters[value]:
                num_missing[other] -= 1
                if num_missing[other] == 0:
                    heapq.heappush(ready, (growth(other), other))
