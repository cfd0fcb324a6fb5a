"""Every peak that is off by over one per cent, beside how far apart the card's own two runs were, and why."""

import tomllib
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any

from benchmarks.accuracy.predictions import Prediction
from benchmarks.accuracy.scores import Score, score
from benchmarks.accuracy.workloads import Workload
from benchmarks.tables import table

BOUND = 0.01
KNOWN = Path(__file__).with_name("known.toml")
INTRODUCTION = """\
## Differences over 1%

Most workloads were measured twice. Where the card's own two runs differ, nothing can predict both."""


def render_differences(predictions: Iterable[Prediction]) -> str:
    """A section of Markdown, with the reasons of known.toml; nothing if there is no such difference."""
    off = [(prediction, score(prediction)) for prediction in predictions if prediction.report]
    rows = [row for prediction, errors in off for row in _rows(prediction.workload, errors)]
    if not rows:
        return ""
    known = tomllib.loads(KNOWN.read_text(encoding="utf-8"))
    names = list(dict.fromkeys(row[0] for row in rows))
    reasons = "\n".join(f"- {name}: {known.get(name, 'not explained yet.')}" for name in names)
    head = ("workload", "card", "peak", "error", "between the card's two runs")
    return "\n\n".join([INTRODUCTION, table(head, rows), reasons])


def _rows(workload: Workload, errors: Score) -> Iterator[tuple[str, ...]]:
    for peak, error in (("allocated", errors.allocated_error), ("reserved", errors.reserved_error)):
        if abs(error) > BOUND:
            apart = _between_runs(workload.measured, f"peak_{peak}")
            yield workload.base_name, workload.gpu, peak, f"{error:+.2%}", apart


def _between_runs(measured: dict[str, Any], key: str) -> str:
    return f"{measured['again'][key] / measured[key] - 1:+.2%}" if "again" in measured else "measured once"
