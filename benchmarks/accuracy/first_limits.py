"""Limits that were predicted before they were measured: a section of docs/verdicts.md.

    python -m benchmarks.accuracy.first_limits

`make verdicts` writes it too; this leaves the rest of the page as it is.
"""

import json
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

from benchmarks.accuracy.verdicts_page import PAGE, Comparison, Verdict, agreement, measured_verdict, summary
from benchmarks.accuracy.workloads import PREDICTED_FIRST
from benchmarks.tables import table

HEADING = "## Predicted first"
INTRODUCTION = """\
Scripts of [benchmarks/predicted_first](../benchmarks/predicted_first/README.md), and some that catch
`torch.OutOfMemoryError`, under limits that were predicted and committed, then measured. *caught* is how many failures a
script got over before its end, `op` and phase are those of the prediction, *inside* is the card's innermost frame."""
HEAD = ("run", "limit GiB", "on the card", "predicted", "", "caught", "predicted", "predicted at", "inside")
# What ends a run before the limit can: no more is known of it than before.
NOT_RUN = frozenset({"no result", "exit", "ModuleNotFoundError", "ImportError"})


@dataclass(frozen=True, slots=True, kw_only=True)
class FirstLimit:
    """A run under a limit: what was `predicted` of it, and `measured` then, None where it was not."""

    name: str
    predicted: dict[str, Any]
    measured: dict[str, Any] | None

    @property
    def has_run(self) -> bool:
        """Whether the card answered."""
        return self.measured is not None and (self.measured["error"] or {}).get("kind") not in NOT_RUN

    @property
    def comparison(self) -> Comparison:
        """Both verdicts."""
        assert self.measured is not None
        foretold = self.predicted["predicted"]
        fits, line, size = (foretold[key] for key in ("fits", "line", "size"))
        return Comparison(
            workload=self.name,
            limit_gib=self.predicted["limit_mib"] / 1024,
            measured=measured_verdict(self.measured["error"]),
            predicted=None if fits is None else Verdict(fits=fits, line=line, size=size),
        )

    @property
    def caught(self) -> tuple[int, int]:
        """Failures that the script got over: on the card, predicted."""
        assert self.measured is not None
        is_oom = (self.measured["error"] or {}).get("kind") == "oom"
        return self.measured["num_ooms"] - is_oom, self.predicted["predicted"]["caught_ooms"]


def first_limits() -> list[FirstLimit]:
    """All that were predicted."""
    predicted, measured = (PREDICTED_FIRST / f"limits_{name}" for name in ("predicted.json", "measured.jsonl"))
    lines = measured.read_text().splitlines() if measured.exists() else []
    known = {record["id"]: record for record in map(json.loads, lines)}
    return [
        FirstLimit(name=name, predicted=record, measured=known.get(name))
        for name, record in json.loads(predicted.read_text()).items()
    ]


def render_first_limits(limits: Sequence[FirstLimit]) -> str:
    """The section as Markdown."""
    run = [limit for limit in limits if limit.has_run]
    left = [limit.name for limit in limits if not limit.has_run]
    parts = [HEADING, INTRODUCTION, "\n".join(_about(run))] if run else [HEADING, INTRODUCTION]
    if left:
        parts.append(f"Not measured: {', '.join(left)}.")
    if run:
        parts += [summary([limit.comparison for limit in run]), table(HEAD, map(_row, run))]
    return "\n\n".join(parts) + "\n"


def with_first_limits(page: str) -> str:
    """`page` with this section as its last, in place of the one that it has."""
    return f"{page.split(HEADING)[0].rstrip()}\n\n{render_first_limits(first_limits())}"


def _about(limits: Sequence[FirstLimit]) -> Iterator[str]:
    measured, predicted = [limit.measured or {} for limit in limits], [limit.predicted for limit in limits]
    dates = " and ".join(sorted({each["measured_on"] for each in measured}))
    yield f"- Measured on {dates}: {measured[0]['device']}, torch {measured[0]['torch']}."
    dates = " and ".join(sorted({each["predicted_on"] for each in predicted}))
    rules = predicted[0]["device_rules"]
    yield f"- Predicted on {dates}: torch {predicted[0]['torch']} with the device rules of {rules}."


def _row(limit: FirstLimit) -> tuple[str, ...]:
    comparison, foretold, (caught, expected) = limit.comparison, limit.predicted["predicted"], limit.caught
    assert limit.measured is not None
    at = (
        f"{foretold['op'] or foretold['library']}, {foretold['phase']}, step {foretold['step']}"
        if "op" in foretold
        else ""
    )
    return (
        limit.name,
        f"{comparison.limit_gib:.3f}",
        str(comparison.measured),
        str(comparison.predicted or "no answer"),
        agreement(comparison),
        str(caught),
        str(expected),
        at,
        (limit.measured["error"] or {}).get("innermost") or "",
    )


if __name__ == "__main__":
    PAGE.write_text(with_first_limits(PAGE.read_text(encoding="utf-8")), encoding="utf-8")
