"""Ranks of larger worlds on one real card: `python -m benchmarks.ranks.one_card predict|measure|compare`.

A rank of FSDP2 or tensor parallelism runs alone: PyTorch's fake process group says that there are others, and its
collectives return at once. Allocator, kernels, DTensor and FSDP2 are the real ones; NCCL is not there, and what is
computed is wrong. Those of DistributedDataParallel are as many processes on the card, joined by Gloo.
"""

import json
import os
import runpy
import subprocess
import sys
import tempfile
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from datetime import date
from pathlib import Path

HERE = Path(__file__).parent
PREDICTED, MEASURED = HERE / "one-card-predicted.json", HERE / "one-card-measured.json"
CARD, RULES = "h200", "2.11+cu130"
IN_PROCESSES = ("zero",)
TASKS = {
    4: ("fsdp", "zero", "tensor-parallel", "fsdp-uneven", "hybrid", "tensor-parallel-fsdp"),
    2: ("fsdp", "zero", "tensor-parallel"),
    512: ("fsdp",),
    8: ("fsdp", "tensor-parallel-fsdp"),
}
NUM_AT_ONCE = 6


def cases() -> list[tuple[str, int]]:
    """Each task with the size of its world; of each the first rank and the last are looked at."""
    return [(task, size) for size, tasks in TASKS.items() for task in tasks]


def predict(task: str, size: int) -> list[dict]:
    """The peaks of both ranks, simulated with NCCL."""
    with tempfile.TemporaryDirectory() as scratch:
        file = Path(scratch, "report.json")
        options = ["--gpu", CARD, "--torch", RULES, "--ranks", str(size), "--rank", f"0,{size - 1}", "--steps", "4"]
        words = [sys.executable, "-m", "peaksight", "run", *options, "--json", str(file), "train.py", task]
        subprocess.run(words, cwd=HERE, check=True, stdout=subprocess.DEVNULL)
        rows = json.loads(file.read_text())["devices"]
    return [{"rank": row["rank"], **_predicted(row["peak"])} for row in rows]


def _predicted(peak: dict) -> dict:
    return {f"predicted_{what}_bytes": peak[f"{what}_bytes"] for what in ("allocated", "reserved")}


def measure(task: str, size: int) -> list[dict]:
    """The peaks of both ranks on the card of this machine."""
    ranks = range(size) if task in IN_PROCESSES else (0, size - 1)
    with tempfile.TemporaryDirectory() as scratch, ThreadPoolExecutor(size) as processes:
        run = [processes.submit(_start, task, rank, size, scratch) for rank in ranks]
        records = [each.result() for each in run]
    print(task, size, records, flush=True)
    return [record for record in records if record["rank"] in (0, size - 1)]


def _start(task: str, rank: int, size: int, scratch: str) -> dict:
    told = {"RANK": str(rank), "WORLD_SIZE": str(size), "LOCAL_RANK": "0"}
    told |= {"MEETING_POINT": f"{scratch}/store", "GLOO_SOCKET_IFNAME": "lo"}
    words = [sys.executable, __file__, "rank", task]
    done = subprocess.run(words, env=os.environ | told, capture_output=True, text=True, timeout=150, check=False)
    record = [line.removeprefix("RANK ") for line in done.stdout.splitlines() if line.startswith("RANK ")]
    return json.loads(record[-1]) if record else {"rank": rank, "failure": done.stderr[-1500:]}


def run_rank(task: str) -> None:
    """In a process of its own: train.py as this rank, and what it held."""
    import torch
    import torch.distributed as dist

    join = dist.init_process_group
    rank, size = int(os.environ["RANK"]), int(os.environ["WORLD_SIZE"])

    def join_others(backend: str) -> None:
        if task in IN_PROCESSES:
            join("gloo", init_method=f"file://{os.environ['MEETING_POINT']}", rank=rank, world_size=size)
        else:
            from torch.testing._internal.distributed.fake_pg import FakeStore

            join("fake", store=FakeStore(), rank=rank, world_size=size)

    dist.init_process_group = join_others
    sys.argv = ["train.py", task]
    runpy.run_path(str(HERE / "train.py"), run_name="__main__")
    torch.cuda.synchronize()
    peaks = {"allocated": torch.cuda.max_memory_allocated(), "reserved": torch.cuda.max_memory_reserved()}
    record = {"rank": rank} | {f"measured_{what}_bytes": number for what, number in peaks.items()}
    record |= {"gpu": torch.cuda.get_device_name(), "torch": torch.__version__, "measured_on": str(date.today())}
    print("RANK", json.dumps(record), flush=True)


def compare() -> None:
    """One line a rank and statistic."""
    predicted, measured = (json.loads(file.read_text()) for file in (PREDICTED, MEASURED))
    for name, records in measured.items():
        for ours, theirs in zip(predicted[name], records, strict=True):
            errors = [
                f"{what} {ours[f'predicted_{what}_bytes'] / theirs[f'measured_{what}_bytes'] - 1:+.2%}"
                for what in ("allocated", "reserved")
            ]
            print(f"{name:28s} rank {theirs['rank']:3d}", *errors)


def write(look: Callable[[str, int], list[dict]], file: Path, at_once: int) -> None:
    """What `look` says of each case, written down after every one."""
    rows = {}
    with ThreadPoolExecutor(at_once) as pool:
        for (task, size), records in zip(cases(), pool.map(lambda case: look(*case), cases()), strict=True):
            rows[f"{task} on {size}"] = records
            file.write_text(json.dumps(rows, indent=1) + "\n")


def main() -> None:
    """Predict or measure all, and write it down, or compare."""
    match sys.argv[1]:
        case "predict":
            write(predict, PREDICTED, 2)
        case "measure":
            write(measure, MEASURED, NUM_AT_ONCE)
        case "rank":
            run_rank(sys.argv[2])
        case "compare":
            compare()


if __name__ == "__main__":
    main()
