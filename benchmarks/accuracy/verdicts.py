"""`make verdicts`: fits or not, and where it fails, under the limits of benchmarks/truth/capped.json.

Each of twelve workloads runs under every limit that the GPU was given. Of all of them the comparison goes into
docs/verdicts.md, with the limits that were predicted first.
"""

import argparse
import json
import sys
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from typing import Any

from benchmarks.accuracy.captures import ROOM, capture
from benchmarks.accuracy.first_limits import with_first_limits
from benchmarks.accuracy.verdicts_page import PAGE, Comparison, Verdict, measured_verdict, render_verdicts, size_in
from benchmarks.accuracy.workloads import TRUTH, Workload, workloads
from peaksight.records import Capture
from peaksight.units import GIB


def main() -> None:
    """Print the comparison, and write the page if every workload ran."""
    parser = argparse.ArgumentParser(prog="make verdicts", description=__doc__)
    parser.add_argument("--jobs", type=int, default=2, metavar="N", help="simulations at a time (default: 2)")
    parser.add_argument("--only", nargs="+", default=[""], metavar="PREFIX", help="only these workloads; no page")
    options = parser.parse_args()
    with ThreadPoolExecutor(options.jobs) as pool:
        comparisons = list(pool.map(_compare, *zip(*_runs(tuple(options.only)), strict=True)))
    page = render_verdicts(comparisons)
    print(page, end="")
    if options.only == [""]:
        PAGE.write_text(with_first_limits(page), encoding="utf-8")


def _runs(prefixes: tuple[str, ...]) -> Iterator[tuple[Workload, dict[str, Any]]]:
    measured = json.loads((TRUTH / "capped.json").read_text())
    for workload in workloads(prefixes):
        yield from ((workload, run) for run in measured if run["id"].split("@")[0] == workload.name)


def _compare(workload: Workload, run: dict[str, Any]) -> Comparison:
    fraction = run["cap_gib"] * GIB / ROOM.card.total_bytes
    comparison = Comparison(
        workload=workload.name,
        limit_gib=run["cap_gib"],
        measured=measured_verdict(run["error"]),
        predicted=predicted_verdict(capture(workload, settings=f"per_process_memory_fraction:{fraction!r}")),
    )
    print(f"{run['id']}: {comparison.predicted}, measured {comparison.measured}", file=sys.stderr, flush=True)
    return comparison


def predicted_verdict(simulated: Capture) -> Verdict | None:
    """How a run ends, None without an answer; of a backward pass, as on the card, at the line that called it."""
    if simulated.fatal is None:
        return Verdict(fits=True) if simulated.finished != "failed" else None
    failure = simulated.failures[simulated.fatal]
    line = failure.backward_source or failure.source
    return Verdict(fits=False, line=line, size=size_in(failure.message))


if __name__ == "__main__":
    main()
