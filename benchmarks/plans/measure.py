"""On a machine with a GPU: `python -m benchmarks.plans.measure FILE [PAIR...] [--seconds N]` runs what was predicted.

Of each pair: the script as it is below the limit, which has to fail, and without it; the first plan below the limit;
and without it that of the expert's tries that is predicted to be the fastest of those that stay below, with those that
are predicted to be nearly as fast. Each in a process of its own, and one at a
time: a second would take the host from the one that is measured.
"""

import argparse
import json
import multiprocessing
import os
import time
from concurrent.futures import ProcessPoolExecutor
from datetime import date
from pathlib import Path
from typing import Any

from benchmarks.plans import child
from benchmarks.plans.pairs import PREDICTED, Pair, all_pairs

ENVIRONMENT = {"HF_HUB_OFFLINE": "1", "PYTORCH_NVML_BASED_CUDA_CHECK": "1"}
RUN_SECONDS = 60
PRELOADED = ["benchmarks.plans.preload"]


def main() -> None:
    """Measure until the time is over: the plans of all pairs first, then the tries."""
    parser = argparse.ArgumentParser()
    parser.add_argument("file", type=Path)
    parser.add_argument("pairs", nargs="*", help="All that were predicted by default.")
    parser.add_argument("--seconds", type=float, default=500, help="Start no other run then.")
    parser.add_argument(
        "--without", metavar="RUN", action="append", default=[], help="Of each pair leave this run out."
    )
    options = parser.parse_args()
    started = time.perf_counter()
    predicted = json.loads(PREDICTED.read_text())
    pairs = [pair for pair in all_pairs() if pair.name in (options.pairs or predicted)]
    wanted = [(pair, name, run) for pair in pairs for name, run in runs(pair, predicted[pair.name]).items()]
    found: dict[str, dict[str, Any]] = {pair.name: {} for pair in pairs}
    about = in_child(machine)
    for pair, name, run in sorted(wanted, key=lambda each: each[1] in each[0].tries):
        if name not in options.without and time.perf_counter() - started < options.seconds:
            found[pair.name][name] = result = in_child(child.run, *run)
            options.file.write_text(json.dumps({"machine": about, "pairs": found}, indent=1) + "\n")
            took = round(time.perf_counter() - started)
            print(took, pair.name, name, result.get("seconds"), result.get("error", ""), flush=True)


def in_child(call: Any, *args: Any) -> dict[str, Any]:
    """What `call` returns in a process that is forked from one with all imports, or the error."""
    os.environ.update(ENVIRONMENT)
    context = multiprocessing.get_context("forkserver")
    context.set_forkserver_preload(PRELOADED)
    with ProcessPoolExecutor(1, mp_context=context) as process:
        try:
            return process.submit(call, *args).result(timeout=RUN_SECONDS)
        except Exception as error:  # whatever a script raises is a result
            for each in multiprocessing.active_children():
                each.kill()
            return {"error": f"{type(error).__name__}: {error}"[-500:]}


def machine() -> dict[str, str]:
    """What was measured on."""
    import torch

    return {"card": torch.cuda.get_device_name(), "torch": torch.__version__, "date": str(date.today())}


def runs(pair: Pair, predicted: dict[str, Any]) -> dict[str, tuple[list[str], int, list[Any]]]:
    """Arguments, limit and changes of every run of `pair` that is wanted."""
    plan = predicted["plan"] or {"changes": [], "arguments": None}
    planned = [pair.argv[0], *(pair.argv[1:] if plan["arguments"] is None else plan["arguments"])]
    found: dict[str, tuple[list[str], int, list[Any]]] = {
        "original, limited": (pair.argv, pair.limit_bytes, []),
        "original": (pair.argv, 0, []),
        "plan, limited": (planned, pair.limit_bytes, plan["changes"]),
    }
    return found | {name: ([*pair.argv, *pair.tries[name]], 0, []) for name in _best_tries(pair, predicted["tries"])}


def _best_tries(pair: Pair, predicted: dict[str, Any]) -> list[str]:
    """Those below the limit that may be the fastest, since that is right to within 15 %."""
    seconds = {
        name: predicted[name]["seconds"] for name in pair.tries if predicted[name]["reserved"] <= pair.limit_bytes
    }
    return [name for name in seconds if seconds[name] <= 1.15 * min(seconds.values())]


if __name__ == "__main__":
    main()
