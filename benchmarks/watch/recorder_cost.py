"""Measures what the recorder adds to a step, without a card: `python -m benchmarks.watch.recorder_cost`.

A loop of steps that do nothing, whose card answers as torch does: with a nested dictionary of counts, made anew each
time. Everything else is what a watched run has: the watchers, the file of lines, the capsule. The least of many rounds
is printed, for other work on the machine only adds.
"""

import argparse
import cProfile
import pstats
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import torch

from peaksight.live import statistics
from peaksight.live.recorder import Recorder
from peaksight.live.statistics import CudaStatistics
from peaksight.live.watching import Watching, recording
from peaksight.records.watched import WatchedCard

STEPS_A_ROUND = 500
_COUNTS = ("allocation", "segment", "active", "inactive_split")
_OVERSIZE = ("oversize_segments", "oversize_allocations")
_SIZES = ("allocated_bytes", "reserved_bytes", "active_bytes", "inactive_split_bytes", "requested_bytes")


def counted(device: int) -> dict[str, object]:
    """What `torch._C._cuda_memoryStats` answers."""
    pools = ("all", "small_pool", "large_pool")
    found: dict[str, object] = {
        name: {pool: {"current": 1 << 30, "peak": 1 << 31, "allocated": 1, "freed": 1} for pool in pools}
        for name in (*_COUNTS, *_SIZES)
    }
    found |= {name: {"current": 0, "peak": 0, "allocated": 0, "freed": 0} for name in _OVERSIZE}
    return found | {"num_alloc_retries": 0, "num_ooms": 0}


class MadeUpCuda(CudaStatistics):
    """The statistics of a card that is not there."""

    def __init__(self) -> None:
        """It is in use."""
        super().__init__()
        self._peaks = statistics._Peaks(counted, lambda device: None)
        self._in_use = [0]

    def _is_initialized(self) -> bool:
        return True

    def _look(self, peaks: statistics._Peaks) -> None:
        """The one card is in use."""

    def free_bytes(self, device: int) -> int:
        """Always as much."""
        return 8 << 30

    def card(self, device: int) -> WatchedCard:
        """One of 16 GiB."""
        return WatchedCard(device=device, name="none", total_bytes=16 << 30, torch=str(torch.__version__), settings="")


@contextmanager
def watched() -> Iterator[tuple[torch.optim.Optimizer, Recorder]]:
    """An optimizer with nothing to do, watched."""
    with tempfile.TemporaryDirectory() as directory:
        optimizer = torch.optim.SGD([torch.nn.Parameter(torch.zeros(1))])
        watching = Watching(directory=Path(directory), quiet=True)
        with recording(watching, ("train.py",), MadeUpCuda()) as recorder:
            yield optimizer, recorder


def microseconds(optimizer: torch.optim.Optimizer) -> float:
    """Of one step, over a round of them."""
    began = time.process_time()
    for _ in range(STEPS_A_ROUND):
        optimizer.step()
    return (time.process_time() - began) / STEPS_A_ROUND * 1e6


def main() -> None:
    """Print what a step takes with and without the recorder."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rounds", type=int, default=40)
    parser.add_argument("--profile", action="store_true", help="print where the time goes, too")
    args = parser.parse_args()
    plain = torch.optim.SGD([torch.nn.Parameter(torch.zeros(1))])
    without = min(microseconds(plain) for _ in range(args.rounds))
    with watched() as (optimizer, _):
        with_it = min(microseconds(optimizer) for _ in range(args.rounds))
        if args.profile:
            with cProfile.Profile() as profile:
                microseconds(optimizer)
            pstats.Stats(profile).sort_stats("tottime").print_stats(25)
    reading = min(_reading() for _ in range(args.rounds))
    print(f"a step that does nothing {without:.1f} us, recorded {with_it:.1f} us: {with_it - without:.1f} us more,")
    print(f"of which {reading:.1f} us make the dictionary that torch makes itself")


def _reading() -> float:
    began = time.process_time()
    for _ in range(STEPS_A_ROUND):
        counted(0)
    return (time.process_time() - began) / STEPS_A_ROUND * 1e6


if __name__ == "__main__":
    main()
