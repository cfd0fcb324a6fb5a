"""`python -m benchmarks.plans.predict [NAME...]`: what `fix` finds for each pair, into predicted.json.

Plans may be of the class noise, as an expert's tries are: other micro-batches draw other masks. The seconds that each
search took are those of the machine that it ran on.
"""

import json
import subprocess
import sys
from datetime import date
from typing import Any

from benchmarks.plans.pairs import PREDICTED, SCRIPTS, Pair, all_pairs
from peaksight.gpus import find_card, room_on

CARD = "h200"


def main(names: list[str]) -> None:
    """Predict the named pairs, or all, and keep what the file has of others."""
    found: dict[str, Any] = json.loads(PREDICTED.read_text()) if PREDICTED.exists() else {}
    for pair in all_pairs():
        if not names or pair.name in names:
            found[pair.name] = predict(pair) | {"date": str(date.today())}
            PREDICTED.write_text(json.dumps(found, indent=1) + "\n")
            print(pair.name, found[pair.name].get("title"), found[pair.name].get("searched_seconds"), flush=True)


def predict(pair: Pair) -> dict[str, Any]:
    """The first plan, and what an expert's tries come to, all simulated."""
    report = _fix(pair)
    best = report["best"] or report["smallest"]
    return {
        "gpu": report["gpu"],
        "fits": report["best"] is not None,
        "title": best["candidate"]["title"],
        "plan": report["plan"],
        "original": _figures(report["original"]["outcome"]),
        "predicted": _figures(best["outcome"]),
        "plans": len(report["tried"]),
        "searched_seconds": round(report["seconds"], 1),
        "tries": {name: _run([*pair.argv, *words]) for name, words in pair.tries.items()},
    }


def _fix(pair: Pair) -> dict[str, Any]:
    others = room_on(find_card(CARD)).usable_bytes - pair.limit_bytes
    vary = ["--vary", pair.vary] if pair.vary else []
    options = ["--gpu", CARD, "--reserved-by-others", str(others), "--class", "noise", "--json", "-", *vary]
    return json.loads(_peaksight("fix", *options, *pair.argv))


def _run(argv: list[str]) -> dict[str, Any]:
    report = json.loads(_peaksight("run", "--gpu", CARD, "--json", "-", *argv))
    seconds = [step["predicted_seconds"] for step in report["steps"] if step.get("predicted_seconds")]
    peak = report["peak"]
    return {
        "allocated": peak["allocated_bytes"],
        "reserved": peak["reserved_bytes"],
        "seconds": min(seconds[1:] or seconds, default=None),
    }


def _figures(outcome: dict[str, Any]) -> dict[str, Any]:
    return {
        "allocated": outcome["allocated_bytes"],
        "reserved": outcome["reserved_bytes"],
        "seconds": outcome["seconds"],
    }


def _peaksight(*words: str) -> bytes:
    command = [sys.executable, "-m", "peaksight", *words]
    return subprocess.run(command, cwd=SCRIPTS, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, check=False).stdout


if __name__ == "__main__":
    main(sys.argv[1:])
