"""On a machine with a GPU: `python -m benchmarks.times.measure FOLDER --seconds N` writes what kernels and steps take.

`micro.json` has the microbenchmarks, `steps.json` the workloads, each in a process of its own; those that N seconds do
not reach are left out. The next process imports its libraries while one is measured.
"""

import argparse
import gc
import json
import os
import runpy
import subprocess
import sys
import time
import warnings
from collections.abc import Callable, Iterator
from contextlib import suppress
from datetime import date
from itertools import pairwise
from pathlib import Path
from statistics import median
from typing import Any

HERE = Path(__file__).parent
SCRIPTS = HERE.parent / "truth" / "scripts"
NUM_STEPS = 8
NUM_WARM_UP = 3
# Cycles of a card: as long as its host needs to launch what is timed then.
_HEAD_START = 12_000_000
_MAX_LAUNCHES = 150
_MIN_SECONDS = 3e-3


def workloads() -> dict[str, list[str]]:
    """Script and arguments of each."""
    return {name: words.split() for name, words in json.loads((HERE / "workloads.json").read_text())}


def machine() -> dict[str, str]:
    """What was measured on."""
    import torch

    cpu = next((line for line in Path("/proc/cpuinfo").read_text().splitlines() if line.startswith("model name")), "")
    return {
        "card": torch.cuda.get_device_name(),
        "torch": torch.__version__,
        "date": str(date.today()),
        "cpu": cpu.partition(":")[2].strip(),
    }


def time_on_card(run: Callable[[], object]) -> tuple[float, float]:
    """Seconds of one `run` on the card, where it follows upon others, and on the host."""
    import torch

    for _ in range(NUM_WARM_UP):
        run()
    torch.cuda.synchronize()
    started = time.perf_counter()
    run()
    torch.cuda.synchronize()
    alone = time.perf_counter() - started
    number = max(5, min(_MAX_LAUNCHES, round(_MIN_SECONDS / alone)))
    times, host_times = [], []
    for _ in range(2):
        begin, end = torch.cuda.Event(enable_timing=True), torch.cuda.Event(enable_timing=True)
        torch.cuda._sleep(_HEAD_START)
        begin.record()
        started = time.perf_counter()
        for _ in range(number):
            run()
        host_times.append((time.perf_counter() - started) / number)
        end.record()
        torch.cuda.synchronize()
        times.append(begin.elapsed_time(end) / 1e3 / number)
    return min(times), min(host_times)


def measure_kernels() -> dict[str, Any]:
    """Every case of cases.py: seconds on the card and on the host, or the error."""
    import torch

    from benchmarks.times.cases import CASES

    found: dict[str, Any] = {}
    for name, prepare in CASES.items():
        try:
            found[name] = time_on_card(prepare())
        except (RuntimeError, torch.OutOfMemoryError) as error:
            found[name] = str(error)[:200]
            gc.collect()
    return found


def measure_host() -> dict[str, Any]:
    """Every model of hosts.py: seconds of each phase on the host, while the card has less to do."""
    import torch

    from benchmarks.times.hosts import HOSTS, phases

    found = {}
    for host in HOSTS:
        steps = phases(*host)
        times: dict[str, list[float]] = {phase: [] for phase in steps}
        for _ in range(NUM_STEPS):
            for phase, run in steps.items():
                torch.cuda.synchronize()
                started = time.perf_counter()
                run()
                times[phase].append(time.perf_counter() - started)
        found[" ".join(map(str, host))] = {phase: median(values[NUM_WARM_UP:]) for phase, values in times.items()}
    return found


def measure_copies() -> dict[str, float]:
    """Seconds until a copy between host and card is done, by its bytes and the host's memory."""
    import torch

    found = {}
    for num_bytes in (4, 2**16, 2**20, 2**24, 2**28):
        card = torch.empty(num_bytes, dtype=torch.uint8, device="cuda")
        plain = torch.ones(num_bytes, dtype=torch.uint8)
        pinned = plain.pin_memory()
        for name, target, source in (
            ("to card, pageable", card, plain),
            ("to card, pinned", card, pinned),
            ("to host, pageable", plain, card),
            ("to host, pinned", pinned, card),
        ):
            found[f"{name}, {num_bytes}"] = _until_done(lambda t=target, s=source: t.copy_(s))
    value = torch.ones((), device="cuda")
    found["item"] = _until_done(value.item)
    return found


def _until_done(run: Callable[[], object]) -> float:
    import torch

    times = []
    for _ in range(8):
        torch.cuda.synchronize()
        started = time.perf_counter()
        run()
        torch.cuda.synchronize()
        times.append(time.perf_counter() - started)
    return median(times[NUM_WARM_UP:])


def measure_micro() -> dict[str, Any]:
    """All microbenchmarks."""
    return {
        "machine": machine(),
        "copies": measure_copies(),
        "host": measure_host(),
        "kernels": measure_kernels(),
    }


def measure_steps(words: list[str]) -> dict[str, Any]:
    """Run a script as it is; seconds between the ends of its steps, by events that the card has in its stream."""
    import torch
    from torch.optim.optimizer import register_optimizer_step_post_hook

    ends: list[Any] = []

    def stepped(*_: Any) -> None:
        event = torch.cuda.Event(enable_timing=True)
        event.record()
        ends.append(event)

    register_optimizer_step_post_hook(stepped)
    load_ahead()
    script, *arguments = words
    sys.argv = [script, *arguments, "--steps", str(NUM_STEPS)]
    sys.path.insert(0, str(SCRIPTS))
    runpy.run_path(str(SCRIPTS / script), run_name="__main__")
    torch.cuda.synchronize()
    seconds = [before.elapsed_time(after) / 1e3 for before, after in pairwise(ends)]
    return {
        "argv": words,
        "seconds": median(seconds[NUM_WARM_UP - 1 :]),
        "steps": seconds,
        "peak_allocated": torch.cuda.max_memory_allocated(),
        **machine(),
    }


def load_ahead() -> None:
    """Read all batches before the first: a step is timed without what its data takes."""
    from torch.utils.data import DataLoader

    iterate = DataLoader.__iter__
    DataLoader.__iter__ = lambda loader: iter(list(iterate(loader)))  # type: ignore[assignment, method-assign]


def child() -> None:
    """Import what is slow, wait for the words of a workload on a line, and print what was measured last."""
    os.environ["HF_HUB_OFFLINE"] = "1"
    warnings.simplefilter("ignore")
    import torch
    import transformers  # noqa: F401

    with suppress(ImportError):
        import timm  # noqa: F401
    torch.zeros(1, device="cuda")
    words = sys.stdin.readline().split()
    found = measure_micro() if words == ["micro"] else measure_steps(words)
    print("\n" + json.dumps(found))


def _children() -> Iterator[subprocess.Popen]:
    """Processes that import; the next one is there before it is asked for."""

    def start() -> subprocess.Popen:
        command = [sys.executable, "-m", "benchmarks.times.measure", "--child"]
        return subprocess.Popen(
            command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
        )

    waiting = [start(), start()]
    try:
        while True:
            yield waiting.pop(0)
            waiting.append(start())
    finally:
        for process in waiting:
            process.kill()


def _answer(process: subprocess.Popen, words: str) -> dict[str, Any]:
    output, errors = process.communicate(words + "\n", timeout=120)
    return json.loads(output.splitlines()[-1]) if process.returncode == 0 else {"error": errors[-1500:]}


def main() -> None:
    """The microbenchmarks, then one workload after the other until the time is up."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.times.measure", description=__doc__)
    parser.add_argument("folder", type=Path, nargs="?")
    parser.add_argument("--seconds", type=float, default=600)
    parser.add_argument("--child", action="store_true", help=argparse.SUPPRESS)
    arguments = parser.parse_args()
    if arguments.child:
        return child()
    began, steps = time.monotonic(), {}
    children = _children()
    micro = _answer(next(children), "micro")
    (arguments.folder / "micro.json").write_text(json.dumps(micro) + "\n")
    print(f"micro: {time.monotonic() - began:.0f} s {micro.get('error', '')}", flush=True)
    for name, words in workloads().items():
        if time.monotonic() - began > arguments.seconds:
            break
        steps[name] = _answer(next(children), " ".join(words))
        (arguments.folder / "steps.json").write_text(json.dumps(steps, indent=1) + "\n")
        print(
            name, steps[name].get("seconds", steps[name].get("error")), f"{time.monotonic() - began:.0f} s", flush=True
        )
    children.close()
    return None


if __name__ == "__main__":
    main()
