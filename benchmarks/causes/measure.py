"""On a machine with GPUs: `python measure.py FILE` measures every script of tests/scripts/reports, as it is and fixed.

Nothing of peaksight is needed. A script that is started by torchrun runs as rank 0 of one.
"""

import argparse
import itertools
import json
import os
import subprocess
import sys
import tempfile
from concurrent.futures import ThreadPoolExecutor
from datetime import date
from pathlib import Path

SCRIPTS = Path(__file__).parents[2] / "tests" / "scripts" / "reports"
ONE_RANK = {"RANK": "0", "LOCAL_RANK": "0", "WORLD_SIZE": "1", "LOCAL_WORLD_SIZE": "1", "MASTER_ADDR": "127.0.0.1"}
FIRST_PORT = 29600
TIME_LIMIT = 150
PROBE = """
import atexit, json, os, runpy, sys
script, out, *sys.argv[1:] = sys.argv[1:]
sys.argv[0] = script
sys.path[0] = os.path.dirname(script)
import torch
peaks = lambda: {"peak_allocated": torch.cuda.max_memory_allocated(), "peak_reserved": torch.cuda.max_memory_reserved()}
try:
    runpy.run_path(script, run_name="__main__")
finally:
    open(out, "w").write(json.dumps(peaks()))
"""


def measure(script: Path, options: list[str], place: int, num_gpus: int) -> dict:
    """The peaks of one run, and how it ended."""
    with tempfile.TemporaryDirectory() as directory:
        out = Path(directory, "peaks.json")
        gpu = {"CUDA_VISIBLE_DEVICES": str(place % num_gpus), "MASTER_PORT": str(FIRST_PORT + place)}
        command = [sys.executable, "-c", PROBE, str(script), str(out), *options]
        try:
            done = subprocess.run(
                command, cwd=directory, env=os.environ | ONE_RANK | gpu, capture_output=True, timeout=TIME_LIMIT
            )
        except subprocess.TimeoutExpired:
            return {"error": f"more than {TIME_LIMIT} s"}
        peaks = json.loads(out.read_text()) if out.exists() else {}
        return peaks | ({"error": done.stderr.decode(errors="replace")[-300:]} if done.returncode else {})


def main() -> None:
    """Run all, several at a time."""
    import torch

    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("file", type=Path)
    parser.add_argument("--jobs", type=int, default=10)
    options = parser.parse_args()
    num_gpus = torch.cuda.device_count()
    runs = list(itertools.product(sorted(SCRIPTS.glob("*.py")), ([], ["--fixed"])))
    with ThreadPoolExecutor(options.jobs) as pool:
        results = list(pool.map(lambda run: measure(*run[1], run[0], num_gpus), enumerate(runs)))
    peaks = {
        f"{script.stem}{' '.join(['', *words])}": result for (script, words), result in zip(runs, results, strict=True)
    }
    about = {"gpu": torch.cuda.get_device_name(0), "torch": torch.__version__, "measured_on": str(date.today())}
    options.file.write_text(json.dumps(about | {"runs": peaks}, indent=1) + "\n")
    print(sum("error" in result for result in results), "of", len(results), "failed")


if __name__ == "__main__":
    main()
