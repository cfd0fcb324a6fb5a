"""Predicts the tasks of train.py on two cards into predicted.json, to be committed before anything is measured."""

import json
import subprocess
import sys
import tempfile
from datetime import date
from pathlib import Path

HERE = Path(__file__).parent
TASKS = ("teacher", "pipeline", "device-map", "data-parallel")
RULES = "2.11+cu130"
CARD = "h100-80gb"


def predict(task: str) -> dict:
    """The peaks of each card, from the report of `peaksight run --gpus 2`."""
    with tempfile.TemporaryDirectory() as scratch:
        file = Path(scratch) / "report.json"
        options = ["--gpu", CARD, "--gpus", "2", "--torch", RULES, "--json", str(file)]
        subprocess.run([sys.executable, "-m", "peaksight", "run", *options, "train.py", task], cwd=HERE, check=True)
        report = json.loads(file.read_text())
    return {
        "torch": report["torch"],
        "device_rules": RULES,
        "predicted_on": str(date.today()),
        "cards": [
            {
                "predicted_allocated_bytes": card["peak"]["allocated_bytes"],
                "predicted_reserved_bytes": card["peak"]["reserved_bytes"],
            }
            for card in report["devices"]
        ],
    }


if __name__ == "__main__":
    (HERE / "predicted.json").write_text(json.dumps({task: predict(task) for task in TASKS}, indent=1) + "\n")
