"""`python -m benchmarks.snapshot_file`: what reading a large memory snapshot takes, in time and in host memory.

It is made up in the manner of `torch.cuda.memory._dump_snapshot()`: a list of frames of its own for each allocation,
shared by its frees, of frames that are the same objects throughout. Writing a gigabyte takes 8 GB of memory.
"""

import argparse
import pickle
import random
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from itertools import islice
from pathlib import Path
from typing import Any

ENTRY_BYTES = 168
STACK_DEPTH = 60
NUM_STACKS = 4000
NUM_ALIVE = 4000
SEGMENT_BYTES = 20 << 20
LIBRARIES = "/opt/conda/lib/python3.11/site-packages"
# The most that this process held: `ru_maxrss` would count what its parent held before.
READ = """
import sys, time
from pathlib import Path
from peaksight.postmortem.snapshots import read_snapshot
started = time.process_time()
(found,) = read_snapshot(Path(sys.argv[1]))
seconds = time.process_time() - started
(most,) = [line.split()[1] for line in open("/proc/self/status") if line.startswith("VmHWM")]
print(f"{len(found.capture.allocations):,} allocations")
print(f"read in {seconds:.0f} s (CPU time), {int(most) / 2**20:.2f} GiB of host memory at most")
"""


def main() -> None:
    """Write one snapshot, read it in a process of its own, and print both."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.snapshot_file", description=__doc__)
    parser.add_argument("--megabytes", type=int, default=1000)
    parser.add_argument("--keep", type=Path, metavar="FILE", help="write the snapshot to FILE and leave it there")
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        file = options.keep or Path(folder) / "snapshot.pickle"
        num_events = options.megabytes * 10**6 // ENTRY_BYTES
        with file.open("wb") as opened:
            pickle.dump(made_up_snapshot(num_events), opened)
        print(f"{num_events:,} events: {file.stat().st_size / 1e6:,.0f} MB")
        subprocess.run([sys.executable, "-c", READ, str(file)], check=True)


def made_up_snapshot(num_events: int) -> dict[str, Any]:
    """A snapshot of `num_events`, the same at each call, whose last blocks are alive."""
    events = list(islice(_events(random.Random(0)), num_events))
    return {"segments": [], "device_traces": [events], "allocator_settings": {}, "external_annotations": []}


def _events(chance: random.Random) -> Iterator[dict[str, Any]]:
    """Every block in a segment of its own; at random, one is allocated or one of those alive is freed."""
    stacks = _stacks(chance)
    addresses = [(140 << 40) + slot * SEGMENT_BYTES for slot in range(NUM_ALIVE)]
    for address in addresses:
        yield _event("segment_alloc", address, SEGMENT_BYTES, chance.choice(stacks))
    alive: list[tuple[int, int, list]] = []
    while True:
        if addresses and (not alive or chance.random() < 0.5):
            block = (addresses.pop(), chance.randrange(1, SEGMENT_BYTES), list(chance.choice(stacks)))
            alive.append(block)
            yield _event("alloc", *block)
            continue
        block = alive.pop(chance.randrange(len(alive)))
        addresses.append(block[0])
        yield _event("free_requested", *block)
        yield _event("free_completed", *block)


def _stacks(chance: random.Random) -> list[list[dict[str, Any]]]:
    frames = [
        {
            "name": f"function_{number}",
            "filename": f"{LIBRARIES}/torch/nn/f{number % 90}.py",
            "line": number,
        }
        for number in range(3000)
    ]
    script = {"name": "<module>", "filename": "/home/me/train.py", "line": 88}
    return [[*chance.choices(frames, k=STACK_DEPTH), script] for _ in range(NUM_STACKS)]


def _event(action: str, address: int, size: int, frames: list) -> dict[str, Any]:
    return {
        "action": action,
        "addr": address,
        "size": size,
        "stream": 0,
        "time_us": 1_764_000_000_000_000 + address % 10**9,
        "compile_context": "".join(("N", "/A")),
        "user_metadata": "",
        "pool_id": (address & 0, 0),
        "frames": frames,
    }


if __name__ == "__main__":
    main()
