"""Predicts every kind of kinds.py into predicted.json: to be committed before anything is measured."""

import json
import subprocess
import sys
import tempfile
from datetime import date
from pathlib import Path

HERE = Path(__file__).parent
FILE = HERE / "predicted.json"
KINDS = """points seq2seq lstm-lm encoder-fp16 encoder-half gat speech diffusion slow-attention translate segment t5
lora-vit""".split()
RULES = "2.11+cu130"


def predict(kind: str) -> dict:
    """The record of one kind, from the report of `peaksight run`."""
    argv = ["kinds.py", "--task", kind]
    with tempfile.TemporaryDirectory() as directory:
        file = Path(directory) / "report.json"
        options = ["--gpu", "h100-80gb", "--torch", RULES, "--json", str(file)]
        subprocess.run([sys.executable, "-m", "peaksight", "run", *options, *argv], cwd=HERE, check=True)
        report = json.loads(file.read_text())
    return {
        "argv": argv,
        "gpu": report["gpu"]["name"],
        "torch": report["torch"],
        "device_rules": RULES,
        "predicted_on": str(date.today()),
        "predicted_allocated_bytes": report["peak"]["allocated_bytes"],
        "predicted_reserved_bytes": report["peak"]["reserved_bytes"],
    }


def main() -> None:
    """Add the kinds to what was predicted before."""
    predicted = json.loads(FILE.read_text()) | {f"kinds-{kind}": predict(kind) for kind in KINDS}
    FILE.write_text(json.dumps(predicted, indent=1) + "\n")


if __name__ == "__main__":
    main()
