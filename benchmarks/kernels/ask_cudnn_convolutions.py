"""Ask cuDNN for the workspaces of convolutions, and measure some: `python ask_cudnn_convolutions.py FILE SECONDS`.

The first line of FILE.jsonl.gz has the properties of the card and the versions. Of the others each is a problem and one
of three answers, by processes side by side until the time is over: `plans`, cuDNN's plans for each result as
cudnn_plans.py has them, those of an engine and as many bytes once; `measured`, the bytes that torch requests beside
each result in its first call and in a second; `tried`, the same under `cudnn.benchmark`.

Problems are those of convolution_series.py and of workload_layers.jsonl.gz; plans are also asked for some that
network_layers.py and drawn_layers.py measured. With `--device DEVICE.json`, a card's properties, only plans are asked,
and no card is needed.
"""

import argparse
import fcntl
import gzip
import json
import multiprocessing
import os
import random
import time
from collections.abc import Callable, Iterable, Iterator
from itertools import islice
from pathlib import Path
from typing import Any

from convolution_series import all_series, is_of_size
from cudnn_plans import Cudnn, CudnnError

FOLDER = Path(__file__).parent
LAYERS = FOLDER / "workload_layers.jsonl.gz"
KNOWN = {"network_layers_trials": 1000, "network_layers_h200": 1200, "drawn_layers_h200": 1200}
RESULTS = ("forward", "input", "weight")
# Processes of each kind, on a machine with 16 cores.
NUM_PROCESSES = {"plans": 8, "measured": 3, "tried": 4}
NUM_OF_SERIES = {"plans": 6, "measured": 6}
MOST_BYTES = 15 << 20
MOST_RESERVED_BYTES = 4 << 30
LINES_AT_A_TIME = 40
SETTLE_SECONDS = 20


def main() -> None:
    """Start the processes, and wait for them."""
    parser = argparse.ArgumentParser()
    parser.add_argument("file", type=Path)
    parser.add_argument("seconds", type=float)
    parser.add_argument("--device", type=Path)
    parser.add_argument("--series", nargs="+", metavar="NAME", help="plans and measurements of these alone")
    options = parser.parse_args()
    device = json.loads(options.device.read_text()) if options.device else None
    end = time.monotonic() + options.seconds
    options.file.write_bytes(b"")
    kinds = {"plans": 2} if device else NUM_OF_SERIES if options.series else NUM_PROCESSES
    context = multiprocessing.get_context("spawn")
    processes = [
        context.Process(target=work, args=(options.file, kind, number, count, end, device, options.series))
        for kind, count in kinds.items()
        for number in range(count)
    ]
    for process in processes:
        process.start()
    for process in processes:
        process.join(max(0, end + SETTLE_SECONDS - time.monotonic()))
        process.terminate()
    print(*summary(options.file), sep="\n")


def summary(file: Path) -> Iterator[str]:
    """How many answers of each kind there are, how many of them errors, and one of these."""
    yield f"{file.stat().st_size:,} bytes"
    lines = [json.loads(line) for line in gzip.decompress(file.read_bytes()).splitlines()]
    yield str(lines[0] if lines else "nothing")
    for kind in NUM_PROCESSES:
        answers = [line[kind] for line in lines if kind in line]
        errors = [answer["error"] for answer in answers if "error" in answer]
        yield f"{kind}: {len(answers)}, of them errors: {len(errors)} {errors[:1]}"


def work(
    file: Path, kind: str, number: int, count: int, end: float, device: dict[str, Any] | None, series: list[str] | None
) -> None:
    """Answer every `count`th problem of a kind."""
    answer = answerer(kind, device)
    if kind == "plans" and number == 0:
        append(file, [first_line(device)])
    problems = islice(all_series(series) if series else PROBLEMS[kind](), number, None, count)
    lines: list[dict[str, Any]] = []
    for done, problem in enumerate(problems):
        if time.monotonic() > end or file.stat().st_size > MOST_BYTES:
            break
        lines.append(problem | {kind: answered(answer, problem)})
        if len(lines) == LINES_AT_A_TIME:
            print(f"{kind} {number}: {done + 1} at {end - time.monotonic():.0f} s before the end", flush=True)
            append(file, lines)
            lines = []
    append(file, lines)


def answerer(kind: str, device: dict[str, Any] | None) -> Callable[[dict[str, Any]], dict[str, Any]]:
    """The function that answers problems of a kind."""
    if kind == "plans":
        cudnn = Cudnn(device)
        return lambda problem: {result: distinct(cudnn.plans(problem, result)) for result in RESULTS}
    import torch

    torch.backends.cudnn.benchmark = kind == "tried"
    return measure


def measure(problem: dict[str, Any]) -> dict[str, list[int]]:
    """Bytes requested beside each result, in its first call and in a later one."""
    import torch
    from network_layers import prepared

    if torch.cuda.memory_reserved() > MOST_RESERVED_BYTES:
        torch.cuda.empty_cache()
    _, calls = prepared(as_tuple(problem))
    return {name: [requested(call), requested(call)] for name, call in calls.items()}


def requested(run: Callable[[], object]) -> int:
    """Bytes that a call requests beside its results, at their most."""
    import torch

    torch.cuda.reset_peak_memory_stats()
    results = run()
    stats = torch.cuda.memory_stats()
    del results
    return stats["requested_bytes.all.peak"] - stats["requested_bytes.all.current"]


def answered(answer: Callable[[dict[str, Any]], dict[str, Any]], problem: dict[str, Any]) -> dict[str, Any]:
    """The answer, or the error that was raised."""
    try:
        return answer(problem)
    except (CudnnError, RuntimeError) as error:
        return {"error": str(error)[:200]}


def distinct(plans: Iterable[list[Any]]) -> list[list[Any]]:
    """Plans as [engine, bytes, knobs, is fallback], of those of an engine and as many bytes the first."""
    found: dict[tuple[int, int | None], list[Any]] = {}
    for engine, num_bytes, knobs, _, is_fallback in plans:
        words = knobs if isinstance(knobs, str) else " ".join(f"{kind}={value}" for kind, value in knobs.items())
        found.setdefault((engine, num_bytes), [engine, num_bytes, words, int(is_fallback)])
    return list(found.values())


def as_tuple(problem: dict[str, Any]) -> tuple[Any, ...]:
    """As network_layers.py takes it."""
    import torch

    x, w, groups, is_transposed = (problem[name] for name in ("x", "w", "groups", "transposed"))
    windows = (tuple(problem[name]) for name in ("stride", "padding", "dilation"))
    filters = w[1] * groups if is_transposed else w[0]
    dtype = getattr(torch, problem["dtype"])
    return (x[0], x[1], filters, tuple(w[2:]), *windows, groups, tuple(x[2:]), is_transposed, dtype, problem["last"])


def first_line(device: dict[str, Any] | None) -> dict[str, Any]:
    """The card and the versions."""
    import torch

    cudnn = Cudnn(device)
    line = {"torch": torch.__version__, "cudnn": cudnn.version}
    try:
        return line | {"device": cudnn.device()}
    except CudnnError as error:
        return line | {"error": str(error)}


def append(file: Path, lines: list[dict[str, Any]]) -> None:
    """Add a part that is compressed by itself."""
    text = "".join(f"{json.dumps(line)}\n" for line in lines)
    with file.open("ab") as stream:
        fcntl.flock(stream, fcntl.LOCK_EX)
        stream.write(gzip.compress(text.encode(), 9))
        stream.flush()
        os.fsync(stream.fileno())


def asked() -> Iterator[dict[str, Any]]:
    """Layers of workloads and known problems, series between them."""
    yield from layers()
    draw = random.Random(0)
    drawn = [*known(draw), *all_series()]
    draw.shuffle(drawn)
    yield from drawn


def measured() -> Iterator[dict[str, Any]]:
    """Layers of workloads, then series."""
    yield from layers()
    yield from all_series()


def tried() -> Iterator[dict[str, Any]]:
    """Layers of workloads that try kernels, then groups, then all others."""
    yield from (layer for layer in layers() if layer["bench"])
    series = all_series()
    in_groups = {"of_groups", "depthwise"}
    yield from (each for each in series if each["series"] in in_groups)
    yield from (each for each in series if each["series"] not in in_groups)


PROBLEMS = {"plans": asked, "measured": measured, "tried": tried}


def layers() -> list[dict[str, Any]]:
    """Those of workloads whose reserved memory was off for workspaces of convolutions, as a simulation called them."""
    if not LAYERS.exists():
        return []
    found = map(json.loads, gzip.decompress(LAYERS.read_bytes()).splitlines())
    return [layer for layer in found if is_of_size(layer)]


def known(draw: random.Random) -> Iterator[dict[str, Any]]:
    """Some that were measured before, to see that the plan that is told is the one that runs."""
    for name, most in KNOWN.items():
        (file,) = FOLDER.glob(f"{name}_*.jsonl.gz")
        found = [json.loads(line) for line in gzip.decompress(file.read_bytes()).splitlines()]
        for line in draw.sample(found, min(most, len(found))):
            yield {"of": name, **line}


if __name__ == "__main__":
    main()
