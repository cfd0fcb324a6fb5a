"""Fits or not, and where it fails: predictions against the limits of benchmarks/truth/capped.json.

`python -m benchmarks.accuracy.verdicts [PREFIX...]` runs each of the twelve workloads under every limit that the GPU
was given, and prints what differs, then how many agree.
"""

import json
import re
import sys
from collections import Counter
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from typing import Any

from benchmarks.accuracy.captures import ROOM, capture
from benchmarks.accuracy.workloads import TRUTH, Workload, workloads
from peaksight.records import Capture
from peaksight.units import GIB

NUM_JOBS = 2


def main(prefixes: tuple[str, ...]) -> None:
    """Run them all, two at a time."""
    tally: Counter[str] = Counter()
    with ThreadPoolExecutor(NUM_JOBS) as pool:
        for run, outcomes in pool.map(_outcomes_of, *zip(*_runs(prefixes), strict=True)):
            tally.update(outcomes)
            print(f"{run['id']}: {', '.join(outcomes)}", file=sys.stderr, flush=True)
    for what, count in sorted(tally.items()):
        print(f"{count:3d} {what}")


def _runs(prefixes: tuple[str, ...]) -> Iterator[tuple[Workload, dict[str, Any]]]:
    measured = json.loads((TRUTH / "capped.json").read_text())
    for workload in workloads(prefixes):
        yield from ((workload, run) for run in measured if run["id"].split("@")[0] == workload.name)


def _outcomes_of(workload: Workload, run: dict[str, Any]) -> tuple[dict[str, Any], list[str]]:
    fraction = run["cap_gib"] * GIB / ROOM.card.total_bytes
    return run, outcomes(run, capture(workload, settings=f"per_process_memory_fraction:{fraction!r}"))


def outcomes(run: dict[str, Any], simulated: Capture) -> list[str]:
    """What the prediction `simulated` got right or wrong of one limited `run`."""
    if simulated.finished == "failed" and simulated.fatal is None:
        return ["without a prediction"]
    if run["error"] is None:
        return ["right: fits" if simulated.fatal is None else "wrong: fits on the card"]
    if simulated.fatal is None:
        return ["wrong: fails on the card"]
    return ["right: fails", *_details(run["error"], simulated, simulated.fatal)]


def _details(error: dict[str, Any], simulated: Capture, fatal: int) -> Iterator[str]:
    """Whether line and size are the card's too: the card names the line that called a backward pass."""
    failure = simulated.failures[fatal]
    line = failure.backward_source or failure.source
    size, measured = _size_in(failure.message), _size_in(error["text"])
    yield "at that line" if line == error["line"] else f"at another line ({line}, measured {error['line']})"
    yield "for that size" if size == measured else f"for another size ({size}, measured {measured})"


def _size_in(text: str) -> str | None:
    found = re.search(r"Tried to allocate ([\d.]+ \w+)", text)
    return found[1] if found else None


if __name__ == "__main__":
    main(tuple(sys.argv[1:]) or ("",))
