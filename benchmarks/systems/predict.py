"""`python -m benchmarks.systems.predict [NAME...]` simulates each variant at full scale and writes predicted.json.

The card is the one that measures, with the memory of the note's: both answers are of one card.
"""

import json
import shlex
import subprocess
import sys
from datetime import date
from typing import Any

from benchmarks.systems.cases import PREDICTED, Case, all_cases

CARD = "h200"
RELEASE = "2.11+cu130"


def main(names: list[str]) -> None:
    """Predict all, or those of `names`; what is done is written at once."""
    known = json.loads(PREDICTED.read_text()) if PREDICTED.exists() else {}
    for case in all_cases():
        if not names or case.name in names:
            known[case.name] = {run: predict(case, run) for run in case.runs}
            PREDICTED.write_text(json.dumps(dict(sorted(known.items())), indent=1) + "\n")


def predict(case: Case, run: str) -> dict[str, Any]:
    """The parts of the report that the page needs."""
    options = ["--gpu", CARD, "--memory", case.memory, "--torch", RELEASE, *shlex.split(case.runs[run].options)]
    command = [sys.executable, "-m", "peaksight", "run", "--json", "-", *options, "train.py", *case.argv(run)]
    done = subprocess.run(command, cwd=case.script.parent, capture_output=True, text=True, check=False)
    if done.returncode not in (0, 1):
        raise SystemExit(f"{case.name}, {run}: {done.stderr[-2000:]}")
    print(case.name, run, done.returncode, file=sys.stderr, flush=True)
    return summary(json.loads(done.stdout))


def summary(report: dict[str, Any]) -> dict[str, Any]:
    """Of a report: the peak, the failure, and what the rules found and refuted."""
    oom = report["oom"] and {key: report["oom"][key] for key in ("requested_bytes", "step", "phase", "at")}
    return {
        "predicted_on": str(date.today()),
        "card": report["gpu"]["name"],
        "device_rules": report["device_rules"],
        "usable_bytes": report["gpu"]["usable_bytes"],
        "fits": report["fits"],
        "peak": {key: report["peak"][key] for key in ("allocated_bytes", "reserved_bytes", "step", "phase", "at")},
        "oom": oom,
        "findings": [{key: each[key] for key in ("rule", "title", "bytes")} for each in report["findings"]],
        "refuted": {each["rule"]: each["why"] for each in report["examined"] or ()},
    }


if __name__ == "__main__":
    main(sys.argv[1:])
