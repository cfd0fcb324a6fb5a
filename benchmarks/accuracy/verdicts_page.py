"""The page docs/verdicts.md, which is also what the command prints."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from datetime import date
from importlib.metadata import version

from benchmarks.accuracy.workloads import TORCH
from benchmarks.tables import table

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


def render_verdicts(comparisons: Sequence[Comparison]) -> str:
    """Everything about `comparisons`, as Markdown."""
    introduction = INTRODUCTION.format(today=date.today(), torch=version("torch"), rules=TORCH)
    return "\n\n".join([introduction, _summary(comparisons), _table(comparisons)]) + "\n"


def _summary(comparisons: Sequence[Comparison]) -> str:
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
    agrees = "right" if _agrees_on_size(comparison) else "line right" if _agrees_on_line(comparison) else "wrong"
    return (comparison.workload, f"{comparison.limit_gib:.3f}", str(comparison.measured), predicted, agrees)
