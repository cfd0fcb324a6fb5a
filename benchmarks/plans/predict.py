"""`python -m benchmarks.plans.predict [NAME...]`: what `fix` finds for each pair, into predicted.json.

Plans may be of the class noise, as an expert's tries are: other micro-batches draw other masks. The seconds that each
search took are those of the machine that it ran on. With `--figures` the plans stay: what they and
the scripts as they are come to is simulated anew.
"""

import argparse
import json
import os
import subprocess
import sys
from concurrent.futures import ProcessPoolExecutor
from contextlib import redirect_stdout
from datetime import date
from multiprocessing import get_context
from typing import Any

from benchmarks.plans.pairs import PREDICTED, SCRIPTS, Pair, all_pairs
from peaksight.gpus import find_card, room_on
from peaksight.records.plan import Change
from peaksight.records.script import ScriptCommand
from peaksight.virtual_gpu import simulate

CARD = "h200"


def main() -> None:
    """Predict the named pairs, or all, and keep what the file has of others."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.plans.predict", description=__doc__)
    parser.add_argument("names", nargs="*")
    parser.add_argument("--figures", action="store_true", help="of the plans that the file has")
    options = parser.parse_args()
    found: dict[str, Any] = json.loads(PREDICTED.read_text()) if PREDICTED.exists() else {}
    for pair in all_pairs():
        if pair.name in (options.names or [each.name for each in all_pairs()]):
            known = found.get(pair.name, {})
            found[pair.name] = known | figures(pair, known) if options.figures else search(pair)
            PREDICTED.write_text(json.dumps(found, indent=1) + "\n")
            print(pair.name, found[pair.name].get("title"), found[pair.name].get("searched_seconds"), flush=True)


def search(pair: Pair) -> dict[str, Any]:
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
        "tries": _tries(pair),
        "searched": str(date.today()),
        "date": str(date.today()),
    }


def figures(pair: Pair, known: dict[str, Any]) -> dict[str, Any]:
    """Those of the script as it is and of the plan in `known`."""
    plan = known["plan"]
    planned = [pair.argv[0], *(pair.argv[1:] if plan["arguments"] is None else plan["arguments"])]
    runs = {"original": (pair.argv, []), "predicted": (planned, plan["changes"])}
    with ProcessPoolExecutor(len(runs), mp_context=get_context("forkserver")) as pool:
        found = {name: pool.submit(_simulated, *run) for name, run in runs.items()}
        return {
            **{name: each.result() for name, each in found.items()},
            "searched": known.get("searched", known["date"]),
            "date": str(date.today()),
        }


def _simulated(argv: list[str], changes: list[dict[str, Any]]) -> dict[str, Any]:
    os.chdir(SCRIPTS)
    sys.path.insert(0, str(SCRIPTS))
    command, room = ScriptCommand(target=argv[0], args=tuple(argv[1:])), room_on(find_card(CARD))
    with open(os.devnull, "w") as nowhere, redirect_stdout(nowhere):
        run = simulate(command, room, changes=[Change(**change) for change in changes])[0]
    return {
        "allocated": run.peak_allocated_bytes,
        "reserved": run.peak_reserved_bytes,
        "seconds": min(work.seconds for work in run.work[1:] or run.work),
    }


def _tries(pair: Pair) -> dict[str, Any]:
    return {name: _run([*pair.argv, *words]) for name, words in pair.tries.items()}


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
    main()
