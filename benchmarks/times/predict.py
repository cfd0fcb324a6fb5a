"""`python -m benchmarks.times.predict FILE`: the predicted seconds of a step of each workload, by what is installed."""

import argparse
import json
from datetime import date
from pathlib import Path

from benchmarks.accuracy.captures import capture
from benchmarks.accuracy.workloads import GPU, TORCH, Workload
from benchmarks.times.measure import workloads


def predict(name: str, words: list[str]) -> dict[str, object]:
    """The last complete step of a simulated run."""
    work = capture(Workload(name=name, words=tuple(words), measured={})).work[-1]
    return {
        "argv": words,
        "predicted_seconds": work.seconds,
        "flops": work.flops,
        "bytes": work.bytes,
        "kernels": work.kernels,
        "kernel_seconds": work.kernel_seconds,
    }


def main() -> None:
    """Write them all."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.times.predict", description=__doc__)
    parser.add_argument("file", type=Path)
    arguments = parser.parse_args()
    steps = {name: predict(name, words) for name, words in workloads().items()}
    about = {"gpu": GPU, "torch": TORCH, "date": str(date.today()), "steps": steps}
    arguments.file.write_text(json.dumps(about, indent=1) + "\n")


if __name__ == "__main__":
    main()
