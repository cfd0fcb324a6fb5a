"""One measured run of a script in this process: its peaks, the seconds of its steps, and whom the card waited for."""

import gc
import multiprocessing
import os
import runpy
import sys
import time
from collections.abc import Callable
from contextlib import redirect_stdout
from functools import partial
from itertools import pairwise
from statistics import median
from typing import Any

NUM_STEPS = 10
NUM_WARM_UP = 4
_NUM_NUMBERS = 2**20


class Steps:
    """Follows the steps of a run: when the card ends each, and when the host had launched it. Nothing waits for it."""

    def __init__(self) -> None:
        """No step has ended; needs a GPU."""
        import torch
        from torch.optim.optimizer import register_optimizer_step_post_hook

        self._event = partial(torch.cuda.Event, enable_timing=True)
        self.ends: list[Any] = []
        self.launched: list[float] = []
        self.within: list[dict[str, float]] = [_nothing()]
        self._follow_backward()
        register_optimizer_step_post_hook(self._stepped)
        gc.callbacks.append(self._collected)
        torch.cuda.synchronize()
        self._zero, self._began = self._event(), time.perf_counter()
        self._zero.record()

    def seconds(self) -> float | None:
        """Of a step, the median of those behind the warm-up."""
        seconds = [before.elapsed_time(after) / 1e3 for before, after in pairwise(self.ends)]
        return median(seconds[NUM_WARM_UP - 1 :] or seconds[-1:]) if seconds else None

    def host(self) -> dict[str, float]:
        """Of a step, in the median: what the host takes to launch it, of that in backward passes and in the garbage
        collector, and how long the card takes from then on.
        """
        ended = [self._began + self._zero.elapsed_time(end) / 1e3 for end in self.ends]
        found = [
            {"launching": launched - max(before), "waiting": end - launched, **within}
            for *before, launched, end, within in zip(
                self.launched, ended, self.launched[1:], ended[1:], self.within[1:], strict=False
            )
        ][NUM_WARM_UP - 1 :]
        return {name: median(each[name] for each in found) for name in (found[0] if found else ())}

    def _stepped(self, *_: Any) -> None:
        self.ends.append(self._event())
        self.ends[-1].record()
        self.launched.append(time.perf_counter())
        self.within.append(_nothing())

    def _follow_backward(self) -> None:
        import torch

        run: Callable[..., Any] = torch.Tensor.backward

        def backward(*args: Any, **kwargs: Any) -> Any:
            began = time.perf_counter()
            result = run(*args, **kwargs)
            self.within[-1]["backward"] += time.perf_counter() - began
            return result

        torch.Tensor.backward = backward  # type: ignore[method-assign]

    def _collected(self, phase: str, _: Any) -> None:
        self.within[-1]["collecting"] += time.perf_counter() * (1 if phase == "stop" else -1)


def _fill_fast() -> None:
    """Initial weights repeat the same numbers: to draw all of them on the host takes longer than the steps."""
    import torch

    drawn = {name: getattr(torch.empty(_NUM_NUMBERS), name)() for name in ("normal_", "uniform_")}
    for name, numbers in drawn.items():
        setattr(torch.Tensor, name, _filling(getattr(torch.Tensor, name), numbers, is_uniform=name == "uniform_"))


def _filling(draw: Callable[..., Any], numbers: Any, *, is_uniform: bool) -> Callable[..., Any]:
    import torch

    def fill(tensor: Any, first: float = 0.0, second: float = 1.0, **options: Any) -> Any:
        if tensor.device.type != "cpu" or tensor.numel() < _NUM_NUMBERS or not tensor.is_contiguous():
            return draw(tensor, first, second, **options)
        with torch.no_grad():
            for part in tensor.view(-1).split(_NUM_NUMBERS):
                part.copy_(numbers[: part.numel()])
            return tensor.mul_(second - first if is_uniform else second).add_(first)

    return fill


def _nothing() -> dict[str, float]:
    return {"backward": 0.0, "collecting": 0.0}


def run(argv: list[str], limit_bytes: int, changes: list[dict[str, Any]]) -> dict[str, Any]:
    """Run `argv`, a script of benchmarks/truth, under the changes of a plan, with what PyTorch may reserve limited."""
    import torch

    from benchmarks.plans.pairs import SCRIPTS
    from benchmarks.times.measure import load_ahead
    from peaksight.overlays.apply import apply_changes
    from peaksight.overlays.patches import Patches
    from peaksight.records.plan import Change

    multiprocessing.set_start_method("fork", force=True)  # as in a script that is no child
    load_ahead()
    _fill_fast()
    script, *arguments = argv
    sys.argv = [script, *arguments, *([] if script == "hf_trainer.py" else ["--steps", str(NUM_STEPS)])]
    sys.path.insert(0, str(SCRIPTS))
    error = ""
    with open(os.devnull, "w") as nowhere, redirect_stdout(nowhere), Patches() as patches:
        applied = apply_changes([Change(**change) for change in changes], patches)
        if limit_bytes:
            total = torch.cuda.get_device_properties(0).total_memory
            torch.cuda.set_per_process_memory_fraction(limit_bytes / total)
        steps = Steps()
        try:
            runpy.run_path(str(SCRIPTS / script), run_name="__main__")
        except torch.OutOfMemoryError as oom:
            error = str(oom)[:200]
        without_effect = applied.without_effect()
    torch.cuda.synchronize()
    return {
        "allocated": torch.cuda.max_memory_allocated(),
        "reserved": torch.cuda.max_memory_reserved(),
        "retries": torch.cuda.memory_stats()["num_alloc_retries"],
        "seconds": steps.seconds(),
        "host": steps.host(),
        "steps": len(steps.ends),
        "without_effect": without_effect,
        "oom": error,
    }
