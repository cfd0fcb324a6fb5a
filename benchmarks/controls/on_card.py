"""On a machine with a GPU: `python -m benchmarks.controls.on_card FILE [PREFIX...] [--workers N]` runs them there.

Those of plain loops get their tensors on the card by script_on_card.py; Trainer, accelerate and Lightning find it. A
line of JSON for each, as they come.
"""

import argparse
import json
import tempfile
from concurrent.futures import ThreadPoolExecutor, as_completed
from dataclasses import replace
from datetime import date
from pathlib import Path
from typing import Any

import torch

from benchmarks.controls.table import Control, controls
from benchmarks.controls.verdicts import Answer, Verifier

WRAPPER = Path(__file__).with_name("script_on_card.py")
PLAIN = ("checkpointing.py", "batch_norm.py", "attention.py", "accumulation.py", "contrastive.py", "whitening.py")


def main() -> None:
    """Run them side by side."""
    parser = argparse.ArgumentParser()
    parser.add_argument("file", type=Path)
    parser.add_argument("prefixes", nargs="*")
    parser.add_argument("--workers", type=int, default=8)
    options = parser.parse_args()
    chosen = [control for control in controls() if control.name.startswith(tuple(options.prefixes) or ("",))]
    there = list(filter(None, map(_on_card, chosen)))
    with tempfile.TemporaryDirectory() as directory, ThreadPoolExecutor(options.workers) as pool:
        answers = [pool.submit(Verifier(Path(directory) / each.name).verify, each) for each in there]
        with options.file.open("w") as file:
            for answer in as_completed(answers):
                print(json.dumps(_facts(answer.result())), file=file, flush=True)


def _on_card(control: Control) -> Control | None:
    """The control with its tensors on the card; None for one that would stay on the CPU."""
    if control.needs:
        return control
    script = control.original.split()[0]
    if script not in PLAIN:
        return None
    return replace(control, original=f"{WRAPPER} {control.original}", changed=f"{WRAPPER} {control.changed}")


def _facts(answer: Answer) -> dict[str, Any]:
    certificate, worst = answer.certificate, answer.certificate.worst if answer.certificate else None
    return {
        "name": answer.control.name,
        "expected": answer.control.verdict,
        "verdict": answer.verdict,
        "mistakes": answer.mistakes,
        "error": str(answer.error or ""),
        "relative": worst.relative if worst else None,
        "worst": worst.name if worst else None,
        "smallest_caught": certificate.smallest_caught if certificate else None,
        "card": torch.cuda.get_device_name() if torch.cuda.is_available() else "cpu",
        "torch": torch.__version__,
        "date": str(date.today()),
    }


if __name__ == "__main__":
    main()
