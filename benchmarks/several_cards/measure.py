"""On a machine with two GPUs: `python measure.py FILE` writes what each card held for each task of train.py."""

import json
import runpy
import subprocess
import sys
from datetime import date
from pathlib import Path

import torch

HERE = Path(__file__).parent
TASKS = ("teacher", "pipeline", "device-map", "data-parallel")


def peaks(task: str) -> dict:
    """Run one task in this process; the peaks of each card."""
    sys.argv = ["train.py", task]
    runpy.run_path(str(HERE / "train.py"), run_name="__main__")
    return {
        "task": task,
        "gpu": torch.cuda.get_device_name(0),
        "torch": torch.__version__,
        "measured_on": str(date.today()),
        "cards": [
            {
                "peak_allocated": torch.cuda.max_memory_allocated(index),
                "peak_reserved": torch.cuda.max_memory_reserved(index),
            }
            for index in range(torch.cuda.device_count())
        ],
    }


def main() -> None:
    """Each task in a process of its own, which prints its record last."""
    if sys.argv[1] in TASKS:
        print(json.dumps(peaks(sys.argv[1])))
        return
    command = [sys.executable, __file__]
    lines = [subprocess.run([*command, task], stdout=subprocess.PIPE, text=True, check=True).stdout for task in TASKS]
    Path(sys.argv[1]).write_text(json.dumps([json.loads(line.splitlines()[-1]) for line in lines], indent=1) + "\n")


if __name__ == "__main__":
    main()
