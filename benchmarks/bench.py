"""`make bench`: what a simulated run costs in time and in host memory.

Time is that of GPT-2 at batch 8 (benchmarks/truth): the command in all, on a card that it fits and on one that it does
not fit, where it runs twice; the imports in it, by themselves; and the simulation as a ratio to the same virtual run
with recording off. They take turns, and the best of each counts: other programs on the machine only ever add. So does
Python where it keeps no bytecode, which the first turn makes here.

Beside that, the time and the largest resident size of a script of very many events, Mamba without its kernels, whose
scan goes through the sequence in Python; and the largest resident size of a 7B Llama.
"""

import argparse
import os
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from statistics import median

from benchmarks.accuracy.captures import ROOM, capture
from benchmarks.accuracy.workloads import ENVIRONMENT, GPU, SCRIPTS, TORCH, workloads
from peaksight.records.capture_file import read_capture_file
from peaksight.units import GIB, KIB

LLAMA = Path(__file__).with_name("llama_7b.py")
MAMBA = (str(SCRIPTS / "causal_lm.py"), "--model", "mamba-130m", "--batch", "2", "--seq", "520")
IMPORTS = "import torch; from transformers import AutoModelForCausalLM, GPT2LMHeadModel"
TOO_SMALL = "6GiB"
RUN = ("-m", "peaksight", "run", "--gpu", GPU, "--torch", TORCH)
# The exit codes of a run with an answer.
ANSWERS = (0, 1)


def main() -> None:
    """Print all of it."""
    parser = argparse.ArgumentParser(prog="make bench", description=__doc__)
    parser.add_argument("--repeat", type=int, default=5, metavar="N", help="runs of each kind (default: 5)")
    parser.add_argument("--only", choices=PARTS, action="append", help="one part (default: all)")
    arguments = parser.parse_args()
    for name in arguments.only or PARTS:
        PARTS[name](arguments.repeat)


def print_host_memory(num_repeats: int) -> None:
    """Run a 7B Llama and print the largest resident size."""
    _, resident_bytes = _run(*RUN, str(LLAMA))
    print(f"{LLAMA.stem}: {resident_bytes / GIB:.2f} GiB of host memory")


def print_many_events(num_repeats: int) -> None:
    """Run Mamba once and print its time for so many events: blocks taken and given back."""
    with tempfile.TemporaryDirectory() as directory:
        file = Path(directory) / "mamba.capture"
        seconds, resident_bytes = _run(*RUN, "--save", str(file), *MAMBA)
        (mamba,), _ = read_capture_file(file, type(ROOM))
    num_events = sum(1 if allocation.died is None else 2 for allocation in mamba.allocations)
    print(f"mamba: {num_events:,} events in {seconds:.0f} s, {resident_bytes / GIB:.2f} GiB of host memory")


def print_times(num_repeats: int) -> None:
    """Time GPT-2: the command, the imports, the simulation alone, and the simulation with recording off."""
    (gpt2,) = (workload for workload in workloads() if workload.name == "gpt2-b8")
    script, *words = gpt2.words
    words = [str(SCRIPTS / script), *words]
    kinds = {
        "command": lambda: _run(*RUN, *words)[0],
        f"command, in {TOO_SMALL}": lambda: _run(*RUN, "--memory", TOO_SMALL, *words)[0],
        "imports of torch and transformers": lambda: _run("-c", IMPORTS)[0],
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


def _run(*words: str) -> tuple[float, int]:
    """The seconds and the largest resident size, in bytes, of Python with `words`."""
    started = time.perf_counter()
    process = subprocess.Popen(
        [sys.executable, *words], env=os.environ | ENVIRONMENT, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL
    )
    _, status, usage = os.wait4(process.pid, 0)
    process.returncode = os.waitstatus_to_exitcode(status)
    if process.returncode not in ANSWERS:
        sys.exit(f"{' '.join(words)} gave no answer.")
    return time.perf_counter() - started, usage.ru_maxrss * KIB


PARTS = {"memory": print_host_memory, "events": print_many_events, "times": print_times}

if __name__ == "__main__":
    # Where the environment says otherwise, each run would compile torch and transformers.
    os.environ.pop("PYTHONDONTWRITEBYTECODE", None)
    main()
