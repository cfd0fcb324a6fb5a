"""`python -m benchmarks.systems.predict_jax [RUN...]` simulates pi0_dex at full scale and writes predicted_jax.json.

In an environment with the release of JAX that is measured. The card is the one that measures: without a limit and
without a pool, and `limited` to the memory of the note's card, of which JAX takes its pool.
"""

import json
import os
import shlex
import subprocess
import sys
from datetime import date
from pathlib import Path
from typing import Any

from peaksight.gpus import find_card

HERE = Path(__file__).parent
PREDICTED = HERE / "predicted_jax.json"
SCRIPT = HERE.parents[1] / "examples" / "systems" / "pi0_dex" / "train.py"
CARD, NOTES_CARD = "h200", "l40s"
# Words of the script, and whether the run is limited to the note's card too.
RUNS = {
    "before": ("--variant before", True),
    "note": ("--variant note", False),
    "fixed": ("--variant fixed", True),
    "two forwards": ("--model dex --freeze prefix --batch 32", False),
    "one joint forward": ("--model base --freeze prefix --batch 32", False),
}


def main(names: list[str]) -> None:
    """Predict all runs, or those of `names`; what is done is written at once."""
    known = json.loads(PREDICTED.read_text()) if PREDICTED.exists() else {}
    for name, (words, is_limited) in RUNS.items():
        if names and name not in names:
            continue
        row: dict[str, Any] = {"predicted_on": str(date.today()), "words": shlex.split(words)}
        row["peak"] = report_on(row["words"], preallocates=False)
        if is_limited:
            limit = ("--memory", f"{find_card(NOTES_CARD).total_bytes >> 20}MiB")
            row["limited"] = report_on(row["words"], *limit)
        known[name] = row
        PREDICTED.write_text(json.dumps(known, indent=1) + "\n")
        print(name, row["peak"]["allocated_bytes"], flush=True)


def report_on(words: list[str], *options: str, preallocates: bool = True) -> dict[str, Any]:
    """The parts of the report that are compared."""
    command = [sys.executable, "-m", "peaksight", "run", "--json", "-", "--gpu", CARD, *options, SCRIPT.name, *words]
    environment = os.environ | ({} if preallocates else {"XLA_PYTHON_CLIENT_PREALLOCATE": "false"})
    done = subprocess.run(command, cwd=SCRIPT.parent, env=environment, capture_output=True, text=True, check=False)
    if done.returncode not in (0, 1):
        raise SystemExit(f"{words}: {done.stderr[-2000:]}")
    report = json.loads(done.stdout)
    oom = report["oom"] and {key: report["oom"][key] for key in ("requested_bytes", "step", "phase", "at")}
    calls = [[each["name"], each["peak_bytes"]] for each in report["programs"] if each["name"] != "draw"]
    return {
        "device_rules": report["device_rules"],
        "usable_bytes": report["gpu"]["usable_bytes"],
        "fits": report["fits"],
        "allocated_bytes": report["peak"]["allocated_bytes"],
        "oom": oom,
        "calls": calls,
        "findings": [{key: each[key] for key in ("rule", "bytes")} for each in report["findings"]],
    }


if __name__ == "__main__":
    main(sys.argv[1:])
