"""On a machine with N GPUs, what each rank held for each task of train.py: `python measure.py N FILE`.

`python measure.py N FILE TASK...` measures these. Under torchrun it is one rank of one task.
"""

import json
import os
import runpy
import subprocess
import sys
from datetime import date
from pathlib import Path

import torch
import torch.distributed as dist
from predict import script_of

HERE = Path(__file__).parent


def used_bytes() -> int:
    """What all processes hold of this rank's card: only this one runs there."""
    free, total = torch.cuda.mem_get_info()
    return total - free


def measure(script: str, *args: str) -> dict:
    """Run one script in this process; the peaks of this rank, and what it held before it left its group."""
    at_end = {}

    def leave(*group: object) -> None:
        if not at_end:
            torch.cuda.synchronize()
            at_end.update(used=used_bytes(), reserved=torch.cuda.memory_reserved())
        destroy(*group)

    destroy, dist.destroy_process_group = dist.destroy_process_group, leave
    sys.argv = [script, *args]
    sys.path.insert(0, str(Path(script).parent))
    runpy.run_path(script, run_name="__main__")
    return {
        "rank": int(os.environ["RANK"]),
        "peak_allocated": torch.cuda.max_memory_allocated(),
        "peak_reserved": torch.cuda.max_memory_reserved(),
        "used_at_end": at_end.get("used"),
        "reserved_at_end": at_end.get("reserved"),
        "gpu": torch.cuda.get_device_name(),
        "torch": torch.__version__,
    }


def run(num_ranks: int, words: list[str]) -> dict:
    """All ranks of one script under its launcher; each prints its record last."""
    command = ["torchrun", "--standalone", f"--nproc-per-node={num_ranks}"]
    if Path(words[0]).stem == "accelerated":
        command = ["accelerate", "launch", "--multi_gpu", f"--num_processes={num_ranks}"]
    command += [__file__, *words]
    done = subprocess.run(command, capture_output=True, text=True, timeout=120, check=False)
    records = [json.loads(line.partition("RANK ")[2]) for line in done.stdout.splitlines() if line.startswith("RANK ")]
    failure = "" if len(records) == num_ranks else done.stderr[:3000]
    print(words, failure or [record["peak_allocated"] for record in records], flush=True)
    return {
        "words": [Path(words[0]).name, *words[1:]],
        "measured_on": str(date.today()),
        "ranks": sorted(records, key=lambda record: record["rank"]),
        "failure": failure,
    }


def main() -> None:
    """One rank under torchrun, else all tasks that were predicted for as many ranks."""
    if "RANK" in os.environ:
        print("RANK", json.dumps(measure(*sys.argv[1:])), flush=True)
        return
    num_ranks, file = int(sys.argv[1]), Path(sys.argv[2])
    tasks = sys.argv[3:] or json.loads((HERE / f"predicted-{num_ranks}.json").read_text())
    measured = {}
    for task in tasks:
        script, *args = script_of(task)
        measured[task] = run(num_ranks, [str(HERE / script), *args])
        file.write_text(json.dumps(measured, indent=1) + "\n")


if __name__ == "__main__":
    main()
