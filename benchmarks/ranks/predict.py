"""Predicts the tasks of train.py on N ranks, before anything is measured: `python predict.py N`."""

import json
import subprocess
import sys
import tempfile
from datetime import date
from pathlib import Path

HERE = Path(__file__).parent
RULES = "2.11+cu130"
CARD = "h200"
ON_TWO = (
    "fsdp fsdp-no-reshard fsdp-prefetch fsdp-checkpoint fsdp-offload fsdp-uneven fsdp-accumulate fsdp-save fsdp-rank-0 "
    "zero tensor-parallel lists trainer accelerated"
).split()
ON_FOUR = ["fsdp", "fsdp-uneven", "hybrid", "zero", "tensor-parallel", "tensor-parallel-fsdp"]
TASKS = {2: ON_TWO, 4: ON_FOUR}


def script_of(task: str) -> list[str]:
    """A script of its own, or a task of train.py."""
    return [f"{task}.py"] if (HERE / f"{task}.py").exists() else ["train.py", task]


def predict(task: str, num_ranks: int) -> dict:
    """The peaks of each rank."""
    with tempfile.TemporaryDirectory() as scratch:
        file = Path(scratch) / "report.json"
        options = ["--gpu", CARD, "--torch", RULES, "--rank", "all", "--json", str(file), "--steps", "4"]
        words = ["torchrun", "--nproc-per-node", str(num_ranks), *script_of(task)]
        if task == "lists":
            options[-1] = "0"
        subprocess.run([sys.executable, "-m", "peaksight", "run", *options, *words], cwd=HERE, check=True)
        report = json.loads(file.read_text())
    return {
        "torch": report["torch"],
        "device_rules": RULES,
        "predicted_on": str(date.today()),
        "ranks": [
            {
                "predicted_allocated_bytes": row["peak"]["allocated_bytes"],
                "predicted_reserved_bytes": row["peak"]["reserved_bytes"],
                "predicted_process_bytes": row["peak"]["process_bytes"],
            }
            for row in report["devices"]
        ],
    }


if __name__ == "__main__":
    num_ranks = int(sys.argv[1])
    predictions = {task: predict(task, num_ranks) for task in sys.argv[2:] or TASKS[num_ranks]}
    (HERE / f"predicted-{num_ranks}.json").write_text(json.dumps(predictions, indent=1) + "\n")
