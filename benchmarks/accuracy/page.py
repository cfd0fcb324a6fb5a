"""The page docs/accuracy.md, which is also what the command prints."""

import os
from collections.abc import Iterable, Sequence
from datetime import date
from importlib.metadata import version
from statistics import median

from benchmarks.accuracy.differences import render_differences
from benchmarks.accuracy.first import render_first
from benchmarks.accuracy.goals import render_goals
from benchmarks.accuracy.predictions import Prediction
from benchmarks.accuracy.ranks import memory_cells, render_ranks
from benchmarks.accuracy.scores import Score, score
from benchmarks.accuracy.under_jax import render_jax
from benchmarks.accuracy.workloads import TORCH
from benchmarks.tables import table
from peaksight.units import GIB, MIB

COLUMNS = (
    "workload", "allocated", "measured", "error", "reserved", "measured", "error", "process", "measured", "error",
    "lines", "seconds",
)  # fmt: skip
INTRODUCTION = """\
# Accuracy

Written by `make accuracy`: every workload of benchmarks/truth, run through `peaksight run` without a GPU and compared
with what one did.

- Measured: {device}, torch {measured_torch}, {libraries}.
- Predicted on {today}: torch {torch} with `--torch {rules}`, the same libraries.
- Sizes are peaks in GiB. An error is (predicted - measured) / measured.
- *process* is what nvidia-smi shows of the process at its end, when all that it ever reserved still is: the CUDA
  context, loaded kernels, handles of libraries, and reserved memory.
- *lines* is the part of the bytes alive at the measured peak that the prediction puts on the same line of the script.
  Bytes whose measurement names no line, as in the backward, are left out.
- *seconds* are those of the clock; the machine of {num_cores} cores had a load of {load:.0f} in the last quarter hour.
- Under limited memory: [verdicts](verdicts.md). Other tools on the same workloads: [peers](peers.md)."""
PICTURE = "![Predicted against measured memory of every workload](accuracy.svg)"
LIBRARIES = ("transformers", "timm", "peft", "accelerate")


def render_page(
    predictions: Sequence[Prediction], first: Sequence[Prediction], ranks: Sequence[Prediction] = ()
) -> str:
    """Everything about `predictions`, those of workloads that were predicted `first`, and of `ranks`, as Markdown."""
    scores = [score(prediction) for prediction in predictions if prediction.report]
    parts = [
        *((_introduction(predictions), _summary(predictions, scores)) if predictions else ()),
        PICTURE,
        render_goals(scores),
        render_differences([*predictions, *first]),
        render_first(first),
        render_ranks(ranks),
        render_jax() if predictions else "",
        "## Every workload",
        table(COLUMNS, map(_row, scores)),
        _failures([*predictions, *first, *ranks]),
    ]
    return "\n\n".join(part for part in parts if part) + "\n"


def _introduction(predictions: Sequence[Prediction]) -> str:
    measured = predictions[0].workload.measured
    return INTRODUCTION.format(
        device=measured["device"],
        measured_torch=measured["torch"],
        libraries=", ".join(f"{name} {version(name)}" for name in LIBRARIES),
        today=date.today(),
        num_cores=os.cpu_count(),
        load=os.getloadavg()[2],
        torch=version("torch"),
        rules=TORCH,
    )


def _summary(predictions: Sequence[Prediction], scores: Sequence[Score]) -> str:
    lines = [f"{len(scores)} of {len(predictions)} workloads ran to a report."]
    if scores:
        lines.append(_spread("allocated", [(s.allocated_error, s.name) for s in scores]))
        lines.append(_spread("reserved", [(s.reserved_error, s.name) for s in scores]))
        lines.append(_spread("process", [(s.process_error, s.name) for s in scores]))
        lines.append(_outside(scores))
    return "\n".join(f"- {line}" for line in lines)


def _spread(what: str, errors: list[tuple[float, str]]) -> str:
    sizes = sorted(abs(error) for error, _ in errors)
    worst, name = max(errors, key=lambda error: abs(error[0]))
    within = ", ".join(f"{sum(size <= bound for size in sizes)} within {bound:.0%}" for bound in (0.01, 0.02, 0.05))
    return f"{what}: median error {median(sizes):.2%}, {within}, worst {worst:+.2%} ({name})."


def _outside(scores: Sequence[Score]) -> str:
    worst = max(scores, key=lambda score: abs(score.outside_error_bytes))
    middle = median(abs(score.outside_error_bytes) for score in scores)
    return (
        f"process without reserved memory: median error {middle / MIB:.0f} MiB, "
        f"worst {worst.outside_error_bytes / MIB:+.0f} MiB ({worst.name})."
    )


def _row(score: Score) -> tuple[str, ...]:
    return (
        *memory_cells(score),
        f"{score.predicted_process_bytes / GIB:.3f}",
        f"{score.measured_process_bytes / GIB:.3f}",
        f"{score.process_error:+.2%}",
        "" if score.line_share is None else f"{score.line_share:.0%}",
        f"{score.seconds:.0f}",
    )


def _failures(predictions: Iterable[Prediction]) -> str:
    failed = [prediction for prediction in predictions if prediction.failure]
    return (
        "\n".join(["Without a report:", "", *(f"- {p.workload.name}: {p.failure}" for p in failed)]) if failed else ""
    )
