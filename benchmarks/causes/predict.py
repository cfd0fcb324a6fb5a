"""`python -m benchmarks.causes.predict`: the peaks of every script of tests/scripts/reports, as it is and fixed.

Writes predicted.json, which is committed before measure.py measures the same runs.
"""

import itertools
import json
import os
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from datetime import date
from pathlib import Path

from benchmarks.causes.measure import FIRST_PORT, ONE_RANK, SCRIPTS

FILE = Path(__file__).with_name("predicted.json")
CARD, RULES = "h100-80gb", "2.11+cu130"


def predict(script: Path, options: list[str], place: int) -> dict:
    """The peaks of one run."""
    command = [sys.executable, "-m", "peaksight", "run", "--gpu", CARD, "--torch", RULES, "--json", "-", script.name]
    environment = os.environ | ONE_RANK | {"MASTER_PORT": str(FIRST_PORT + place)}
    done = subprocess.run([*command, *options], cwd=SCRIPTS, env=environment, capture_output=True, check=False)
    if not done.stdout:
        return {"error": done.stderr.decode(errors="replace")[-300:]}
    report = json.loads(done.stdout)
    return {
        "predicted_allocated": report["peak"]["allocated_bytes"],
        "predicted_reserved": report["peak"]["reserved_bytes"],
        "finished": report["finished"],
        "torch": report["torch"],
    }


def main() -> None:
    """Run all, two at a time."""
    runs = list(itertools.product(sorted(SCRIPTS.glob("*.py")), ([], ["--fixed"])))
    with ThreadPoolExecutor(2) as pool:
        results = list(pool.map(lambda run: predict(*run[1], run[0]), enumerate(runs)))
    peaks = {
        f"{script.stem}{' '.join(['', *words])}": result for (script, words), result in zip(runs, results, strict=True)
    }
    about = {"card": CARD, "device_rules": RULES, "predicted_on": str(date.today())}
    FILE.write_text(json.dumps(about | {"runs": peaks}, indent=1) + "\n")


if __name__ == "__main__":
    main()
