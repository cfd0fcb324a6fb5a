"""Predicts workloads into predicted.json, to be committed before anything is measured: `python predict.py CARD NAME...`

A NAME is that of a script here or in families, `kinds-TASK`, or `vary-NAME` of variations.toml; `all` is every one.
"""

import argparse
import json
import subprocess
import sys
import tempfile
import tomllib
from datetime import date
from pathlib import Path

HERE = Path(__file__).parent
FILE = HERE / "predicted.json"
KINDS = """points seq2seq lstm-lm encoder-fp16 encoder-half gat speech diffusion slow-attention translate segment t5
lora-vit""".split()
FAMILIES = sorted(path.stem for path in (HERE / "families").glob("*.py"))
VARIATIONS = {
    f"vary-{name}": words.split() for name, words in tomllib.loads((HERE / "variations.toml").read_text()).items()
}
NAMES = ["convnext_ema", "nano_gpt", *(f"kinds-{kind}" for kind in KINDS), *FAMILIES, *VARIATIONS]
RULES = "2.11+cu130"


def command(name: str) -> tuple[str, list[str]]:
    """The folder of a script, relative to this one, and the script with its arguments."""
    if name in VARIATIONS:
        return "../truth/scripts", VARIATIONS[name]
    if name.startswith("kinds-"):
        return ".", ["kinds.py", "--task", name.removeprefix("kinds-")]
    return ("families" if name in FAMILIES else "."), [f"{name}.py"]


def predict(name: str, card: str) -> dict:
    """The record of one workload on `card`, from the report of `peaksight run`."""
    directory, argv = command(name)
    with tempfile.TemporaryDirectory() as scratch:
        file = Path(scratch) / "report.json"
        options = ["--gpu", card, "--torch", RULES, "--json", str(file)]
        subprocess.run([sys.executable, "-m", "peaksight", "run", *options, *argv], cwd=HERE / directory, check=True)
        report = json.loads(file.read_text())
    peak = report["peak"]
    return {
        "argv": argv,
        "directory": directory,
        "card": card,
        "gpu": report["gpu"]["name"],
        "torch": report["torch"],
        "device_rules": RULES,
        "predicted_on": str(date.today()),
        "predicted_allocated_bytes": peak["allocated_bytes"],
        "predicted_reserved_bytes": peak["reserved_bytes"],
        "predicted_process_bytes": peak["process_bytes"],
    }


def main() -> None:
    """Add to what was predicted before; what is there already stays."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("card", help="a name of `peaksight gpus`, such as h200")
    parser.add_argument("names", nargs="+", choices=["all", *NAMES], metavar="NAME")
    options = parser.parse_args()
    predicted = json.loads(FILE.read_text())
    for name in NAMES if options.names == ["all"] else options.names:
        key = f"{name}-{options.card}"
        if key not in predicted:
            predicted[key] = predict(name, options.card)
            FILE.write_text(json.dumps(predicted, indent=1) + "\n")


if __name__ == "__main__":
    main()
