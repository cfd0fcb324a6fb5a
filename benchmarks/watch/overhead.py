"""Measures the time of a step with and without the recording, in turns within one process.

python -m benchmarks.watch.overhead --out benchmarks/watch/measured/overhead.json
"""

import argparse
import json
import platform
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from datetime import date
from pathlib import Path
from statistics import median

import torch

import peaksight
from benchmarks.watch.training import TRAININGS

WARM_UP = 20


@contextmanager
def alone() -> Iterator[None]:
    """Without any recording: the allocator keeps no history either."""
    torch.cuda.memory._record_memory_history(None)
    yield


@contextmanager
def watched() -> Iterator[None]:
    """As `peaksight watch` does it."""
    torch.cuda.memory._record_memory_history(None)
    with tempfile.TemporaryDirectory() as directory, peaksight.watch(directory):
        yield


@contextmanager
def without_history() -> Iterator[None]:
    """As `peaksight watch` does it, but for the history of the allocator that an OOM capsule shows."""
    with watched():
        torch.cuda.memory._record_memory_history(None)
        yield


WAYS = {"alone": alone, "watched": watched, "watched, no history": without_history}


def seconds_a_step(step: Callable[[], torch.Tensor], steps: int) -> float:
    """The mean over `steps`, from an idle card to an idle card."""
    torch.cuda.synchronize()
    began = time.perf_counter()
    for _ in range(steps):
        step()
    torch.cuda.synchronize()
    return (time.perf_counter() - began) / steps


def measure(step: Callable[[], torch.Tensor], seconds: float, rounds: int) -> dict[str, list[float]]:
    """Seconds of a step in each way, in turns, for `seconds` altogether."""
    seconds_a_step(step, WARM_UP)
    steps = max(5, int(seconds / rounds / len(WAYS) / seconds_a_step(step, WARM_UP)))
    found: dict[str, list[float]] = {way: [] for way in WAYS}
    for _ in range(rounds):
        for way, context in WAYS.items():
            with context():
                seconds_a_step(step, 3)
                found[way].append(seconds_a_step(step, steps))
    return found


def main() -> None:
    """Write the times of all trainings."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--out", type=Path, required=True)
    parser.add_argument("--seconds", type=float, default=30.0)
    parser.add_argument("--rounds", type=int, default=12)
    args = parser.parse_args()
    times = {name: measure(make("cuda"), args.seconds, args.rounds) for name, make in TRAININGS.items()}
    about = {
        "card": torch.cuda.get_device_name(),
        "torch": torch.__version__,
        "python": platform.python_version(),
        "date": date.today().isoformat(),
    }
    args.out.write_text(json.dumps({**about, "seconds": times}, indent=1) + "\n")
    for name, ways in times.items():
        bare = median(ways["alone"])
        for way, seconds in ways.items():
            print(f"{name}: {way}: {median(seconds) * 1000:.3f} ms, {median(seconds) / bare - 1:+.2%}")


if __name__ == "__main__":
    main()
