"""On a machine with a GPU: `python -m benchmarks.plans.measure FILE [PAIR...] [--seconds N]` runs what was predicted.

Of each pair: the script as it is below the limit, which has to fail, and without it; the first plan below the limit;
and the expert's tries without it. Each in a process of its own.
"""

import argparse
import json
import os
import subprocess
import sys
import time
from concurrent.futures import Executor, Future, ThreadPoolExecutor, wait
from datetime import date
from pathlib import Path
from typing import Any

from benchmarks.plans.pairs import PREDICTED, SCRIPTS, Pair, all_pairs

ROOT = Path(__file__).parents[2]
# More would take processors from the one that is measured.
NUM_LOADING = 3


def main() -> None:
    """Measure until the time is over."""
    parser = argparse.ArgumentParser()
    parser.add_argument("file", type=Path)
    parser.add_argument("pairs", nargs="*", help="All that were predicted by default.")
    parser.add_argument("--seconds", type=float, default=500, help="Start no other run then.")
    options = parser.parse_args()
    started, found = time.perf_counter(), {}
    predicted = json.loads(PREDICTED.read_text())
    pairs = [pair for pair in all_pairs() if pair.name in (options.pairs or predicted)]
    with ThreadPoolExecutor(NUM_LOADING) as pool:
        runs = {pair.name: measure(pair, predicted[pair.name], pool) for pair in pairs}
        for name, futures in runs.items():
            wait(futures.values(), timeout=max(1.0, options.seconds - (time.perf_counter() - started)))
            if time.perf_counter() - started > options.seconds:
                pool.shutdown(wait=False, cancel_futures=True)
            found[name] = {run: each.result() for run, each in futures.items() if each.done() and not each.cancelled()}
            options.file.write_text(json.dumps({"machine": machine(), "pairs": found}, indent=1) + "\n")
            print(name, round(time.perf_counter() - started), flush=True)


def machine() -> dict[str, str]:
    """What was measured on."""
    import torch

    return {"card": torch.cuda.get_device_name(), "torch": torch.__version__, "date": str(date.today())}


def measure(pair: Pair, predicted: dict[str, Any], pool: Executor) -> dict[str, Future]:
    """Start every run of `pair` that is wanted: some load their libraries while one has the card."""
    return {name: pool.submit(_child, *words) for name, words in _runs(pair, predicted).items()}


def _runs(pair: Pair, predicted: dict[str, Any]) -> dict[str, tuple]:
    plan = predicted["plan"] or {"changes": [], "arguments": None}
    planned = [pair.argv[0], *(pair.argv[1:] if plan["arguments"] is None else plan["arguments"])]
    runs: dict[str, tuple] = {
        "original, limited": (pair.argv, pair.limit_bytes, []),
        "original": (pair.argv, 0, []),
        "plan, limited": (planned, pair.limit_bytes, plan["changes"]),
    }
    return runs | {name: ([*pair.argv, *words], 0, []) for name, words in pair.tries.items()}


def _child(argv: list[str], limit_bytes: int, changes: list) -> dict[str, Any]:
    settings = json.dumps({"argv": argv, "limit_bytes": limit_bytes, "changes": changes})
    done = subprocess.run(
        [sys.executable, "-m", "benchmarks.plans.child", settings],
        cwd=ROOT,
        env={**os.environ, "PYTHONPATH": _search_path(), "HF_HUB_OFFLINE": "1"},
        capture_output=True,
        text=True,
        check=False,
    )
    last = done.stdout.strip().splitlines()[-1:] or [""]
    return json.loads(last[0]) if last[0].startswith("{") else {"error": done.stderr.strip()[-500:]}


def _search_path() -> str:
    return os.pathsep.join(filter(None, (str(ROOT / "src"), str(ROOT), str(SCRIPTS), os.environ.get("PYTHONPATH", ""))))


if __name__ == "__main__":
    main()
