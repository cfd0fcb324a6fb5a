"""Fits or not, and where it fails: predictions against the limits of benchmarks/truth/capped.json.

`python -m benchmarks.accuracy.verdicts [PREFIX...]` simulates each of the twelve workloads once and replays it under
every limit that the GPU was given.
"""

import json
import sys
from collections import Counter
from typing import Any

from benchmarks.accuracy.captures import capture
from benchmarks.accuracy.workloads import TRUTH, workloads
from peaksight.attribution import first_failure
from peaksight.attribution.verdict import Failure
from peaksight.records import Capture, Phase
from peaksight.units import GIB


def main(prefixes: tuple[str, ...]) -> None:
    """Print what differs, then how many agree."""
    runs = json.loads((TRUTH / "capped.json").read_text())
    tally: Counter[str] = Counter()
    for workload in workloads(prefixes):
        own = [run for run in runs if run["id"].split("@")[0] == workload.name]
        simulated = capture(workload) if own else None
        tally.update(outcome(run, simulated) for run in own)
    for what, count in sorted(tally.items()):
        print(f"{count:3d} {what}")


def outcome(run: dict[str, Any], simulated: Capture) -> str:
    """What the prediction got right or wrong of one limited run; what is wrong is told on stderr."""
    if simulated.finished == "failed":
        return "without a prediction"
    failure = first_failure(simulated, int(run["cap_gib"] * GIB))
    measured, predicted = _measured_place(run), _predicted_place(failure)
    if measured != predicted:
        print(f"{run['id']}: predicted {predicted}, measured {measured}", file=sys.stderr)
    if measured == predicted:
        return "right, fits" if failure is None else "right, fails at that line"
    if failure and run["error"]:
        return "right, but fails at another line"
    return "wrong, fits on the card" if failure else "wrong, fails on the card"


def _measured_place(run: dict[str, Any]) -> str:
    if run["error"] is None:
        return "fits"
    return "backward" if "_engine_run_backward" in run["error"]["innermost"] else run["error"]["line"]


def _predicted_place(failure: Failure | None) -> str:
    """The line of the script, or only `backward`: the card names the line of the call there, not of the forward."""
    if failure is None:
        return "fits"
    return "backward" if failure.allocation.phase is Phase.BACKWARD else failure.allocation.source


if __name__ == "__main__":
    main(tuple(sys.argv[1:]) or ("",))
