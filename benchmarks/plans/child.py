"""One measured run: `python -m benchmarks.plans.child SETTINGS` runs a script and prints its figures as JSON."""

import fcntl
import importlib
import json
import runpy
import sys
import tempfile
import warnings
from contextlib import suppress
from itertools import pairwise
from pathlib import Path
from statistics import median
from typing import Any

NUM_STEPS = 12
NUM_WARM_UP = 4
_KEPT: list[Any] = []


def main(settings: dict[str, Any]) -> dict[str, Any]:
    """Run the script of `settings` under its changes, with what PyTorch may reserve limited."""
    import torch
    from torch.optim.optimizer import register_optimizer_step_post_hook

    from benchmarks.plans.pairs import SCRIPTS
    from benchmarks.times.measure import load_ahead
    from peaksight.overlays.apply import apply_changes
    from peaksight.overlays.patches import Patches
    from peaksight.records.plan import Change

    _load()
    ends: list[Any] = []

    def stepped(*_: Any) -> None:
        ends.append(torch.cuda.Event(enable_timing=True))
        ends[-1].record()

    register_optimizer_step_post_hook(stepped)
    load_ahead()
    script, *arguments = settings["argv"]
    steps = [] if script == "hf_trainer.py" else ["--steps", str(NUM_STEPS)]
    sys.argv = [script, *arguments, *steps]
    error = ""
    with Patches() as patches:
        applied = apply_changes([Change(**change) for change in settings["changes"]], patches)
        if settings["limit_bytes"]:
            total = torch.cuda.get_device_properties(0).total_memory
            torch.cuda.set_per_process_memory_fraction(settings["limit_bytes"] / total)
        try:
            runpy.run_path(str(SCRIPTS / script), run_name="__main__")
        except torch.OutOfMemoryError as oom:
            error = str(oom)[:200]
        without_effect = applied.without_effect()
    torch.cuda.synchronize()
    seconds = [before.elapsed_time(after) / 1e3 for before, after in pairwise(ends)]
    return {
        "allocated": torch.cuda.max_memory_allocated(),
        "reserved": torch.cuda.max_memory_reserved(),
        "retries": torch.cuda.memory_stats()["num_alloc_retries"],
        "seconds": median(seconds[NUM_WARM_UP - 1 :] or seconds[-1:]) if seconds else None,
        "steps": len(ends),
        "without_effect": without_effect,
        "oom": error,
    }


def _load() -> None:
    """Import what scripts import; then wait until no other run has the card, and keep it."""
    for name in ("transformers", "timm", "peft"):
        with suppress(ImportError):
            importlib.import_module(name)
    lock = (Path(tempfile.gettempdir()) / "peaksight-plans.lock").open("w")
    fcntl.flock(lock, fcntl.LOCK_EX)
    _KEPT.append(lock)


if __name__ == "__main__":
    warnings.simplefilter("ignore")
    print(json.dumps(main(json.loads(sys.argv[1]))))
