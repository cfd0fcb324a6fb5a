"""Find where a simulated run leaves the real one: their allocations and frees side by side, in order.

`python -m benchmarks.accuracy.events WORKLOAD [--trace FILE] [--hunks N]` lists the first places where they differ. `-`
is what only the card did, `+` what only the simulation did. Frees are written as the place of their allocation.
"""

import argparse
from collections.abc import Iterator, Sequence
from difflib import SequenceMatcher
from pathlib import Path
from typing import NamedTuple

from benchmarks.accuracy.captures import capture
from benchmarks.accuracy.workloads import trace_of, workload_named
from peaksight.allocator import read_trace
from peaksight.records import Capture

WINDOW = 400
ENOUGH_ALIKE = 4


class Event(NamedTuple):
    """An allocation or a free of `nbytes`; `about` tells whose, where that is known, and does not count."""

    action: str
    nbytes: int
    about: str

    @property
    def key(self) -> tuple[str, int]:
        """What two events have in common that are alike."""
        return self.action, self.nbytes


def main() -> None:
    """Print the first differences of one workload."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("workload")
    parser.add_argument("--trace", type=Path, help="default: the recorded one of benchmarks")
    parser.add_argument("--hunks", type=int, default=10)
    options = parser.parse_args()
    trace = options.trace or trace_of(options.workload)
    measured, simulated = measured_events(trace), simulated_events(capture(workload_named(options.workload)))
    print(f"{len(measured)} events on the card, {len(simulated)} simulated")
    for number, hunk in enumerate(differences(measured, simulated)):
        if number == options.hunks:
            return
        print("\n".join(hunk))


def measured_events(trace: Path) -> list[Event]:
    """What a recorded trace holds of allocations and frees."""
    alive: dict[int, int] = {}
    events = []
    for action, address, nbytes, _ in read_trace(trace):
        if action == "alloc":
            alive[address] = len(events)
            events.append(Event("alloc", nbytes, ""))
        elif action == "free_completed" and address in alive:
            events.append(Event("free", nbytes, f"of event {alive.pop(address)}"))
    return events


def simulated_events(simulated: Capture) -> list[Event]:
    """The same of a simulated run, with operator, module and line."""
    at: dict[int, Event] = {}
    for a in simulated.allocations:
        about = " ".join(filter(None, (a.op, a.phase, a.module, a.source, a.library)))
        at[a.born] = Event("alloc", a.requested_bytes, about)
        if a.died is not None:
            at[a.died] = Event("free", a.requested_bytes, f"of tick {a.born}: {about}")
    return [at[tick] for tick in sorted(at)]


def differences(measured: Sequence[Event], simulated: Sequence[Event]) -> Iterator[list[str]]:
    """Hunks of lines, each from where the two part to where they go on alike."""
    m = s = 0
    while m < len(measured) and s < len(simulated):
        if measured[m].key == simulated[s].key:
            m, s = m + 1, s + 1
            continue
        skip_m, skip_s = _until_alike(measured[m : m + WINDOW], simulated[s : s + WINDOW])
        yield [
            f"@@ event {m} of the card, {s} simulated, after {_told(simulated[s - 1]) if s else 'nothing'}",
            *(f"- {_told(event)}" for event in measured[m : m + skip_m]),
            *(f"+ {_told(event)}" for event in simulated[s : s + skip_s]),
        ]
        m, s = m + skip_m, s + skip_s


def _until_alike(measured: Sequence[Event], simulated: Sequence[Event]) -> tuple[int, int]:
    """How much of each to pass over until `ENOUGH_ALIKE` events are alike, or everything."""
    matcher = SequenceMatcher(None, [e.key for e in measured], [e.key for e in simulated], autojunk=False)
    for block in matcher.get_matching_blocks():
        if block.size >= ENOUGH_ALIKE:
            return block.a, block.b
    return len(measured), len(simulated)


def _told(event: Event) -> str:
    return f"{event.action:5} {event.nbytes:>12,} {event.about}"


if __name__ == "__main__":
    main()
