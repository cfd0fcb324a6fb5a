"""Times `peaksight read` on a log of 100 MB: a training log of one rank or of many, with a crash near its end.

python -m benchmarks.read.speed [--megabytes 100]
"""

import argparse
import resource
import subprocess
import sys
import tempfile
import time
from pathlib import Path

CRASH = (
    'Traceback (most recent call last):\n  File "train.py", line 42, in <module>\n    loss.backward()\n'
    "torch.OutOfMemoryError: CUDA out of memory. Tried to allocate 270.00 MiB. GPU 6 has a total capacity of 23.65 GiB "
    "of which 208.06 MiB is free. Including non-PyTorch memory, this process has 23.44 GiB memory in use. Of the "
    "allocated memory 22.87 GiB is allocated by PyTorch, and 6.23 MiB is reserved by PyTorch but unallocated.\n"
)
KINDS = {
    "training log": lambda i: (
        f"[rank{i % 8}]: step {i} loss {2.5 - i * 1e-9:.4f} lr 3e-4 grad_norm 1.{i % 97:02d} memory 21.3 GB\n"
    ),
    "warnings in every line": lambda i: (
        f"[WARNING] [stage3.py:1850:step] {i} pytorch allocator cache flushes since last step\n"
    ),
    "nothing but crashes": lambda i: CRASH,
    "one line": lambda i: "0.123 137 cudnn killed " * 5,
}


def measure(kind: str, megabytes: int) -> tuple[float, float, float]:
    """Seconds on the clock and of the processor, and MiB of host memory, of the command on a log of this kind."""
    with tempfile.TemporaryDirectory() as folder:
        log = Path(folder) / "train.log"
        write(log, KINDS[kind], megabytes * 10**6)
        start, before = time.perf_counter(), resource.getrusage(resource.RUSAGE_CHILDREN)
        subprocess.run([sys.executable, "-m", "peaksight", "read", str(log)], check=True, stdout=subprocess.DEVNULL)
        seconds, after = time.perf_counter() - start, resource.getrusage(resource.RUSAGE_CHILDREN)
    cpu_seconds = after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime
    return seconds, cpu_seconds, after.ru_maxrss / 1024


def write(log: Path, line_of, num_bytes: int) -> None:
    """A log of `num_bytes` whose crash stands before its last lines."""
    written = number = 0
    with log.open("w") as stream:
        while written < num_bytes - 10_000:
            lines = "".join(line_of(number + i) for i in range(1000))
            written, number = written + len(lines), number + 1000
            stream.write(lines)
        stream.write(f"\n{CRASH}" + "shutting down\n" * 100)


def main() -> None:
    """Print one line a kind."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--megabytes", type=int, default=100)
    megabytes = parser.parse_args().megabytes
    for kind in KINDS:
        seconds, cpu_seconds, mebibytes = measure(kind, megabytes)
        print(f"{megabytes} MB, {kind}: {seconds:.1f} s, {cpu_seconds:.1f} s of CPU, {mebibytes:.0f} MiB", flush=True)


if __name__ == "__main__":
    main()
