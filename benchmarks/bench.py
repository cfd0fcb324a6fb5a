"""`make bench`: what a simulated run costs in time and in host memory.

Time is that of GPT-2 at batch 8 (benchmarks/truth): the command in all, and the simulation as a ratio to the same
virtual run with recording off. They take turns, and the best of each counts: other programs on the machine only ever
add. Host memory is the largest resident size of `peaksight run` on a 7B Llama.
"""

import argparse
import os
import subprocess
import sys
from pathlib import Path
from statistics import median

from benchmarks.accuracy.captures import capture
from benchmarks.accuracy.predictions import predict
from benchmarks.accuracy.workloads import ENVIRONMENT, workloads
from peaksight.units import GIB, KIB

LLAMA = Path(__file__).with_name("llama_7b.py")


def main() -> None:
    """Print both."""
    parser = argparse.ArgumentParser(prog="make bench", description=__doc__)
    parser.add_argument("--repeat", type=int, default=5, metavar="N", help="runs of each kind (default: 5)")
    print_host_memory()
    print_times(parser.parse_args().repeat)


def print_host_memory() -> None:
    """Run a 7B Llama through the command and print the largest resident size."""
    command = [sys.executable, "-m", "peaksight", "run", str(LLAMA)]
    process = subprocess.Popen(command, env=os.environ | ENVIRONMENT, stdout=subprocess.DEVNULL)
    _, status, usage = os.wait4(process.pid, 0)
    if status:
        sys.exit(f"{LLAMA} gave no report.")
    print(f"{LLAMA.stem}: {usage.ru_maxrss * KIB / GIB:.2f} GiB of host memory")


def print_times(num_repeats: int) -> None:
    """Time GPT-2: the command, the simulation alone, and the simulation with recording off."""
    (gpt2,) = (workload for workload in workloads() if workload.name == "gpt2-b8")
    kinds = {
        "command": lambda: predict(gpt2).seconds,
        "simulation": lambda: capture(gpt2).seconds,
        "recording off": lambda: capture(gpt2, record=False).seconds,
    }
    seconds = {kind: [] for kind in kinds}
    for _ in range(num_repeats):
        for kind, measure in kinds.items():
            seconds[kind].append(measure())
    for kind, times in seconds.items():
        print(f"{gpt2.name}, {kind}: {min(times):.2f} s at best, {median(times):.2f} s median of {num_repeats}")
    print(f"{gpt2.name}, recording on / off: {min(seconds['simulation']) / min(seconds['recording off']):.2f}")


if __name__ == "__main__":
    main()
