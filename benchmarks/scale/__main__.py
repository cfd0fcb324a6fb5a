"""`make scale`: time, host memory and predicted peak of Llamas on ever more ranks, into docs/scale.md."""

import argparse
import json
import os
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from datetime import date
from importlib.metadata import version
from pathlib import Path

import psutil

from benchmarks.accuracy.workloads import ENVIRONMENT
from benchmarks.tables import table
from peaksight.units import GIB

HERE = Path(__file__).parent
PAGE = HERE.parents[1] / "docs" / "scale.md"
SIZES = ("1b", "8b", "70b", "405b")
WORLDS = (8, 512, 4096)
MAIN_SIZE, MAIN_WORLD = "70b", 512
HEAD = ("model", "ranks", "CPU", "seconds", "host GiB", "allocated", "reserved", "H100 80GB")
INTRODUCTION = """\
# Scale

Written by `make scale`: [a Llama](../benchmarks/scale/llama.py) under FSDP2 in bfloat16, checkpointed layer by layer,
one sequence of 4,096 words a rank, simulated by `peaksight run --gpu h100-80gb --ranks N --rank 0`. By default the last
rank is simulated too, which takes twice as long.

- Predicted on {today} with torch {torch}; the machine of {num_cores} cores had a load of {load:.0f} in the last quarter
  hour. *CPU* are the seconds of a processor that the whole command took, *seconds* those of the clock.
- *host* is the most memory that it held.
- Of 70B the number of ranks grows, on 512 ranks the model.
- No figure here was measured on cards. [benchmarks/ranks](../benchmarks/ranks/README.md) has ranks of worlds of 2, 4,
  8 and 512 of a smaller Llama that were: allocated within 0.24 %, reserved within 0.78 %.
  [accuracy.md](accuracy.md) has more of two ranks."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Run:
    """One simulation: what it cost, and the peaks in bytes of the rank that is fullest; `failure` where it has none."""

    size: str
    world: int
    cpu_seconds: float
    seconds: float
    host_bytes: int
    allocated_bytes: int = 0
    reserved_bytes: int = 0
    answer: str = ""
    failure: str = ""


def main() -> int:
    """Exit code 1 when a run gave no report."""
    parser = argparse.ArgumentParser(prog="make scale", description=__doc__)
    parser.add_argument("--only", nargs=2, metavar=("SIZE", "RANKS"), help="one run; docs/scale.md is left alone")
    only = parser.parse_args().only
    chosen = [(only[0], int(only[1]))] if only else list(_all())
    runs = list(_each(chosen))
    page = render(runs)
    print(page, end="")
    if not only:
        PAGE.write_text(page, encoding="utf-8")
    return int(any(run.failure for run in runs))


def _all() -> Iterator[tuple[str, int]]:
    yield from ((MAIN_SIZE, world) for world in WORLDS)
    yield from ((size, MAIN_WORLD) for size in SIZES if size != MAIN_SIZE)


def _each(chosen: Sequence[tuple[str, int]]) -> Iterator[Run]:
    for size, world in chosen:
        run = simulate(size, world)
        print(f"{size} on {world}: {run.failure or f'{run.seconds:.0f} s'}", file=sys.stderr, flush=True)
        yield run


def simulate(size: str, world: int) -> Run:
    """Run the command as a person would, and watch what it holds."""
    started, cpu_before = time.perf_counter(), _cpu_seconds()
    with tempfile.TemporaryDirectory() as directory:
        file = Path(directory, "report.json")
        words = ["run", "--gpu", "h100-80gb", "--ranks", str(world), "--rank", "0"]
        words += ["--json", str(file), str(HERE / "llama.py"), size]
        with tempfile.TemporaryFile("w+") as said:
            process = subprocess.Popen(
                [sys.executable, "-m", "peaksight", *words],
                env=os.environ | ENVIRONMENT,
                stdout=subprocess.DEVNULL,
                stderr=said,
            )
            host_bytes = _most_held(process)
            said.seek(0)
            last = said.read().strip().splitlines()[-1:]
        cost = {
            "size": size,
            "world": world,
            "cpu_seconds": _cpu_seconds() - cpu_before,
            "seconds": time.perf_counter() - started,
            "host_bytes": host_bytes,
        }
        if process.returncode not in (0, 1) or not file.exists():
            return Run(**cost, failure="".join(last) or f"exit code {process.returncode}")
        report = json.loads(file.read_text())
    return Run(
        **cost,
        allocated_bytes=report["peak"]["allocated_bytes"],
        reserved_bytes=report["peak"]["reserved_bytes"],
        answer={True: "fits", None: "likely fits", False: "does not fit"}[report["fits"]],
    )


def _cpu_seconds() -> float:
    """What the processes took that have ended."""
    times = os.times()
    return times.children_user + times.children_system


def _most_held(process: subprocess.Popen) -> int:
    """The most that `process` and what it starts held together, looked at ten times a second until it ends."""
    most = 0
    ended = threading.Event()
    threading.Thread(target=lambda: (process.wait(), ended.set()), daemon=True).start()
    while not ended.wait(0.1):
        most = max(most, _held(process.pid))
    return most


def _held(pid: int) -> int:
    total = 0
    try:
        parent = psutil.Process(pid)
        for each in (parent, *parent.children(recursive=True)):
            total += each.memory_info().rss
    except psutil.NoSuchProcess:
        pass
    return total


def render(runs: Sequence[Run]) -> str:
    """The page, as Markdown."""
    introduction = INTRODUCTION.format(
        today=date.today(), torch=version("torch"), num_cores=os.cpu_count(), load=os.getloadavg()[2]
    )
    failures = [f"- {run.size} on {run.world} ranks: {run.failure}" for run in runs if run.failure]
    rows = [_row(run) for run in runs if not run.failure]
    return "\n\n".join(filter(None, [introduction, table(HEAD, rows), "\n".join(failures)])) + "\n"


def _row(run: Run) -> tuple[str, ...]:
    return (
        run.size.upper(),
        f"{run.world:,}",
        f"{run.cpu_seconds:.0f}",
        f"{run.seconds:.0f}",
        f"{run.host_bytes / GIB:.2f}",
        f"{run.allocated_bytes / GIB:.2f}",
        f"{run.reserved_bytes / GIB:.2f}",
        run.answer,
    )


if __name__ == "__main__":
    sys.exit(main())
