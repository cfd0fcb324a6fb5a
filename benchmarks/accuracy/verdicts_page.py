"""The page docs/verdicts.md, which is also what the command prints."""

import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from datetime import date
from importlib.metadata import version
from pathlib import Path
from typing import Any

from benchmarks.accuracy.workloads import TORCH
from benchmarks.tables import table

PAGE = Path(__file__).parents[2] / "docs" / "verdicts.md"
INTRODUCTION = """\
# Verdicts

Written by `make verdicts`: twelve workloads of benchmarks/truth, each at up to seven limits, run on the virtual GPU and
compared with what an H100 did under the same limit (`benchmarks/truth/capped.json`).

- Measured: NVIDIA H100 80GB HBM3, torch 2.11.0+cu130, `set_per_process_memory_fraction`.
- Predicted on {today}: torch {torch} with the device rules of {rules}.
- A run that fails does so at a line of the script, and asks there for a size in one piece.
- Goals: 95% of those that fit and of those that do not, 90% of the failing lines."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Verdict:
    """How a run ends: `line` of the script and `size` asked for are empty where it fits."""

    fits: bool
    line: str = ""
    size: str = ""

    def __str__(self) -> str:
        """In the words of the page."""
        return "fits" if self.fits else f"{self.line}, {self.size}"


@dataclass(frozen=True, slots=True, kw_only=True)
class Comparison:
    """A `workload` under a limit, on the card and as predicted; None where the simulation gave no answer."""

    workload: str
    limit_gib: float
    measured: Verdict
    predicted: Verdict | None


def measured_verdict(error: dict[str, Any] | None) -> Verdict:
    """How the card ended a run: `error` is what probe.py keeps of it."""
    return Verdict(fits=False, line=error["line"] or "", size=size_in(error["text"])) if error else Verdict(fits=True)


def size_in(message: str) -> str:
    """What `message` says that could not be allocated; empty where it does not say."""
    found = re.search(r"Tried to allocate ([\d.]+ \w+)", message)
    return found[1] if found else ""


def render_verdicts(comparisons: Sequence[Comparison]) -> str:
    """Everything about `comparisons`, as Markdown."""
    introduction = INTRODUCTION.format(today=date.today(), torch=version("torch"), rules=TORCH)
    return "\n\n".join([introduction, summary(comparisons), _table(comparisons)]) + "\n"


def summary(comparisons: Sequence[Comparison]) -> str:
    """How many are right, as a list in Markdown."""
    fitting = [c for c in comparisons if c.measured.fits]
    failing = [c for c in comparisons if not c.measured.fits]
    lines = [
        _share("limits that fit on the card are predicted to fit", fitting, _agrees_on_fit),
        _share("limits that are too small are predicted to fail", failing, _agrees_on_fit),
        _share("of those fail at the line where the card does", failing, _agrees_on_line),
        _share("of those ask there for the size that the card was asked for", failing, _agrees_on_size),
    ]
    return "\n".join(f"- {line}" for line in lines)


def _share(what: str, comparisons: Sequence[Comparison], agrees: Callable[[Comparison], bool]) -> str:
    right = sum(map(agrees, comparisons))
    percent = f" ({right / len(comparisons):.0%})" if comparisons else ""
    return f"{right} of {len(comparisons)}{percent} {what}."


def agreement(comparison: Comparison) -> str:
    """In a word, how far both agree."""
    if _agrees_on_size(comparison):
        return "right"
    return "line right" if _agrees_on_line(comparison) else "wrong"


def _agrees_on_fit(comparison: Comparison) -> bool:
    return comparison.predicted is not None and comparison.predicted.fits == comparison.measured.fits


def _agrees_on_line(comparison: Comparison) -> bool:
    return comparison.predicted is not None and comparison.predicted.line == comparison.measured.line


def _agrees_on_size(comparison: Comparison) -> bool:
    return comparison.predicted == comparison.measured


def _table(comparisons: Sequence[Comparison]) -> str:
    head = ("workload", "limit GiB", "on the card", "predicted", "")
    return table(head, map(_row, comparisons))


def _row(comparison: Comparison) -> tuple[str, ...]:
    predicted = str(comparison.predicted or "no answer")
    limit = f"{comparison.limit_gib:.3f}"
    return (comparison.workload, limit, str(comparison.measured), predicted, agreement(comparison))
