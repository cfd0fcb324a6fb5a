"""Measures the time of a step with and without the recording, step by step in turns within one process.

python -m benchmarks.watch.overhead --out benchmarks/watch/measured/overhead.json
"""

import argparse
import json
import platform
import tempfile
import time
from collections.abc import Callable, Iterator
from datetime import date
from pathlib import Path
from statistics import median

import torch

from benchmarks.watch.training import TRAININGS
from peaksight.live.watching import Watching, recording

# By then the recorder knows whether the allocator's history costs time.
WARM_UP = 30
STEPS_A_TURN = 5

Step = Callable[[], torch.Tensor]
Times = dict[str, list[float]]


def seconds_of(step: Step) -> float:
    """Of one step, from an idle card to an idle card."""
    torch.cuda.synchronize()
    began = time.perf_counter()
    step()
    torch.cuda.synchronize()
    return time.perf_counter() - began


def turns(ways: tuple[str, ...], seconds: float) -> Iterator[str]:
    """One of `ways` after the other until `seconds` are over."""
    end = time.perf_counter() + seconds
    while time.perf_counter() < end:
        yield from ways


def recorded_or_not(step: Step, seconds: float) -> Times:
    """Every other step of a watched run is recorded."""
    found: Times = {"recorded": [], "not recorded": []}
    with tempfile.TemporaryDirectory() as directory, recording(Watching(directory=Path(directory)), ()) as recorder:
        for _ in range(WARM_UP):
            step()
        for way in turns(tuple(found), seconds):
            recorder._stopped = way == "not recorded"
            found[way].append(seconds_of(step))
        recorder._stopped = False
    return found


def with_history_or_not(step: Step, seconds: float) -> Times:
    """What the allocator's history costs alone, which an OOM capsule is made of."""
    found: Times = {"history": [], "no history": []}
    for way in turns(tuple(found), seconds):
        if way == "history":
            torch.cuda.memory._record_memory_history(max_entries=50_000, context="alloc", stacks="python")
        for _ in range(STEPS_A_TURN):
            found[way].append(seconds_of(step))
        torch.cuda.memory._record_memory_history(None)
    return found


def main() -> None:
    """Write the times of all trainings."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--out", type=Path, required=True)
    parser.add_argument("--seconds", type=float, default=15.0)
    args = parser.parse_args()
    times = {}
    for name, make in TRAININGS.items():
        step = make("cuda")
        times[name] = recorded_or_not(step, args.seconds) | with_history_or_not(step, args.seconds)
        print(name, {way: f"{median(seconds) * 1000:.3f} ms of {len(seconds)}" for way, seconds in times[name].items()})
    about = {
        "card": torch.cuda.get_device_name(),
        "torch": torch.__version__,
        "python": platform.python_version(),
        "date": date.today().isoformat(),
    }
    rounded = {name: {way: [round(s, 6) for s in all_] for way, all_ in ways.items()} for name, ways in times.items()}
    args.out.write_text(json.dumps({**about, "seconds": rounded}) + "\n")


if __name__ == "__main__":
    main()
