"""`python -m benchmarks.capture_file`: what a capture of many allocations takes on disk, to write and to read.

The allocations are made up in the manner of a deep transformer: sizes, lifetimes, names and lines that repeat as they
do in a training loop.
"""

import argparse
import random
import tempfile
import time
from pathlib import Path

from peaksight.gpus import Room, find_card, room_on
from peaksight.records import Allocation, Capture, Phase, Role, Versions
from peaksight.records.capture_file import read_capture_file, write_capture_file

LAYERS = [f"Model.layers.{layer}.{part}" for layer in range(96) for part in ("attn", "attn.proj", "mlp.up", "mlp.down")]
PLACES = [
    (f"aten::operator_{number}", f"train.py:{number}", f"torch/nn/modules/module_{number % 20}.py:{number}")
    for number in range(200)
]


def main() -> None:
    """Write and read one file, and print its size and both CPU times."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.capture_file", description=__doc__)
    parser.add_argument("num_allocations", type=int, nargs="?", default=1_000_000)
    capture = made_up_capture(parser.parse_args().num_allocations)
    with tempfile.TemporaryDirectory() as folder:
        file = Path(folder) / "run.capture"
        writing = seconds_of(lambda: write_capture_file(file, [capture], room_on(find_card("t4"))))
        reading = seconds_of(lambda: read_capture_file(file, Room))
        size = file.stat().st_size
    print(f"{len(capture.allocations):,} allocations: {size / 1e6:.1f} MB")
    print(f"written in {writing:.1f} s, read in {reading:.1f} s (CPU time)")


def seconds_of(action) -> float:
    """The CPU time that `action` takes."""
    started = time.process_time()
    action()
    return time.process_time() - started


def made_up_capture(num_allocations: int) -> Capture:
    """A capture of `num_allocations`, the same at each call."""
    chance = random.Random(0)
    return Capture(
        argv=("train.py",),
        gpu="t4",
        versions=Versions(installed="2.14.1", device_rules="2.14+cu130"),
        allocations=tuple(made_up_allocation(number, chance) for number in range(num_allocations)),
        steps=(),
        peak_tick=0,
        peak_allocated_bytes=0,
        peak_reserved_bytes=0,
        peak_requested_bytes=0,
        peak_active_bytes=0,
        not_simulated=(),
        writes=(),
        finished="steady",
        script_exit=0,
        seconds=1.0,
    )


def made_up_allocation(number: int, chance: random.Random) -> Allocation:
    """The allocation born at tick `2 * number`: mostly one of the sizes of a layer, mostly gone soon."""
    size = chance.choice((4, 1 << 10, 1 << 20, 3 << 20, 4 << 20, chance.randrange(1, 1 << 28)))
    op, source, library = chance.choice(PLACES)
    return Allocation(
        born=2 * number,
        died=None if chance.random() < 0.001 else 2 * number + chance.randrange(1, 10_000, 2),
        requested_bytes=size,
        allocated_bytes=(size + 511) // 512 * 512,
        stream=0,
        step=1 + number // 10_000,
        phase=chance.choice((Phase.FORWARD, Phase.BACKWARD, Phase.OPTIMIZER)),
        role=chance.choice((Role.UNMARKED, Role.GRADIENT)),
        grad_enabled=chance.random() < 0.5,
        op=op,
        module=LAYERS[number // 20 % len(LAYERS)],
        source=source,
        library=library,
    )


if __name__ == "__main__":
    main()
