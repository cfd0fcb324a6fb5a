"""docs/controls.md: every control with its verdict."""

import json
from collections.abc import Sequence
from itertools import groupby
from pathlib import Path

import torch

from benchmarks.controls.table import Control
from benchmarks.controls.verdicts import Answer
from benchmarks.tables import table

_HEAD = ("change", "changed command", "verdict", "differs by", "of which rounding", "worst tensor", "smallest caught")

ON_CARD = sorted(Path(__file__).parent.glob("on_card_*.jsonl"))
_INTRODUCTION = """# Controls

Written by `make controls`: `peaksight verify` on {number} pairs of the training scripts in `tests/scripts/controls`, on
the CPU with torch {torch}. {right} of {number} verdicts are as they have to be.

- *differs by*: the relative difference of the worst tensor. *of which rounding*: how much of that can be rounding, by
  the original's repetition and its float64 run.
- *smallest caught*: the smallest relative error that would end the verdict if it were in the gradient of any one block.
- *no answer* is right where a run fails, trains nothing, or is compared with itself.
"""


def render(answers: Sequence[Answer]) -> str:
    """The page, a table for each script."""
    right = sum(not answer.mistakes for answer in answers)
    text = _INTRODUCTION.format(number=len(answers), torch=torch.__version__, right=right)
    groups = ((script, list(group)) for script, group in groupby(answers, key=lambda each: _script(each.control)))
    tables = "".join(f"\n## {script}\n{table(_HEAD, map(_row, group))}\n" for script, group in groups)
    return text + tables + on_card()


def on_card() -> str:
    """What came of the controls that on_card.py ran on a GPU."""
    answers = [json.loads(line) for path in ON_CARD for line in path.read_text().splitlines()]
    if not answers:
        return ""
    first, right = answers[0], sum(not answer["mistakes"] for answer in answers)
    names = ", ".join(sorted(answer["name"] for answer in answers))
    return f"""
## On a GPU

{right} of {len(answers)} verdicts are as they have to be on an {first["card"]} with torch {first["torch"]},
{first["date"]} (`python -m benchmarks.controls.on_card`): {names}.
"""


def _script(control: Control) -> str:
    return next(word for word in control.original.split() if word.endswith(".py"))


def _row(answer: Answer) -> tuple[str, ...]:
    control, certificate = answer.control, answer.certificate
    verdict = answer.verdict if not answer.mistakes else f"WRONG: {', '.join(answer.mistakes)}"
    what = f"{control.what} ({control.seen})" if control.seen else control.what
    if certificate is None:
        return what, _options(control), verdict, "", "", "", ""
    worst, caught = certificate.worst, certificate.smallest_caught
    sizes = (_size(worst.relative), _size(worst.tolerance), f"`{worst.name}`") if worst else ("", "", "")
    return what, _options(control), verdict, *sizes, _size(caught) if caught is not None else "none"


def _options(control: Control) -> str:
    """What the changed command has beside its script."""
    options = " ".join(word for word in control.changed.split() if not word.endswith(".py"))
    return f"`{options}`" if options else ""


def _size(value: float | None) -> str:
    return "not finite" if value is None else f"{value:.0e}"
