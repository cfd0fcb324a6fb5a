"""`make causes`: does the first finding name the cause that is known? Writes docs/causes.md.

Every script of tests/scripts/expected.toml is simulated as it is and with `--fixed`. Beside the bytes of the finding
stands by how much the peak falls: simulated again, and for the reports as H200s measured it.
"""

import argparse
import json
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from datetime import date
from pathlib import Path

from benchmarks.tables import table
from peaksight.records import Finding, Report
from peaksight.reporting import report_from_json
from peaksight.units import MIB
from tests.expected_causes import ExpectedCause, expected_causes

PAGE = Path(__file__).parents[2] / "docs" / "causes.md"
MEASURED = json.loads(Path(__file__).with_name("measured.json").read_text())


@dataclass(frozen=True)
class Outcome:
    """What was found in one script, and what its fix changes. Sizes are of its `measure`."""

    expected: ExpectedCause
    report: Report | None
    fixed: Report | None

    @property
    def first(self) -> Finding | None:
        """The first finding."""
        return next(iter(self.report.findings or ()), None) if self.report else None

    @property
    def place(self) -> int | None:
        """At which place the expected cause is, from 1."""
        rules = [finding.rule for finding in (self.report.findings or ())] if self.report else []
        accepted = {self.expected.rule, *self.expected.also}
        return next((place for place, rule in enumerate(rules, start=1) if rule in accepted), None)

    @property
    def falls_by(self) -> int | None:
        """By how much the peak falls when the script is fixed, simulated again."""
        if self.report is None or self.fixed is None:
            return None
        name = f"{self.expected.measure}_bytes"
        return getattr(self.report.peak, name) - getattr(self.fixed.peak, name)

    @property
    def fell_by(self) -> int | None:
        """The same as measured, None where it was not."""
        runs, name = MEASURED["runs"], self.expected.script.stem
        if not self.expected.path.startswith("reports/") or f"{name} --fixed" not in runs:
            return None
        peak = f"peak_{self.expected.measure}"
        return runs[name][peak] - runs[f"{name} --fixed"][peak]

    @property
    def is_disproved(self) -> bool:
        """Whether the peak rose, as measured, where the expected cause was taken away."""
        return self.fell_by is not None and self.fell_by < 0


def outcome_of(expected: ExpectedCause) -> Outcome:
    """Simulate one script twice."""
    return Outcome(expected, _report(expected.command()), _report(expected.command("--fixed")))


def _report(command: list[str]) -> Report | None:
    arguments = [sys.executable, "-m", "peaksight", "run", "--json", "-", *command]
    done = subprocess.run(arguments, capture_output=True, check=False)
    return report_from_json(done.stdout) if done.stdout else None


def page(outcomes: list[Outcome]) -> str:
    """The page."""
    groups = {"reports/": "The reports", "rules/": "Other families"}
    parts = [_head(outcomes)]
    for folder, title in groups.items():
        members = [outcome for outcome in outcomes if outcome.expected.path.startswith(folder)]
        if members:
            parts.append(f"## {title}\n\n{_rows(members)}")
    return "\n\n".join(parts) + "\n"


def _head(outcomes: list[Outcome]) -> str:
    torch = next((outcome.report.torch for outcome in outcomes if outcome.report), "")
    return f"""# Causes

Written by `make causes`: scripts whose cause is known, and what the rules of `peaksight run` find in them.

- Those of *the reports* are public out-of-memory reports of
  [tests/data/oom-reports](../tests/data/oom-reports), written as small training scripts; the expected cause is the one
  that was accepted there. The rules were written with these scripts at hand: this is a training score.
- Predicted on {date.today()}: torch {torch}, a Tesla T4 unless the script needs a larger card.
- *MiB* are those of the expected cause's finding, from lifetimes. *simulated* is by how much the predicted peak falls
  with the accepted fix, *measured* by how much it fell on a {MEASURED["gpu"]} (torch {MEASURED["torch"]},
  {MEASURED["measured_on"]}).
  A fix may change more than the cause, and a run that grows goes on where the simulation stopped.
- {_score(outcomes, "reports/")} of the reports have the expected cause first, {_score(outcomes, "rules/")} of the
  others.{_disproved(outcomes)}"""


def _disproved(outcomes: list[Outcome]) -> str:
    """What is not counted."""
    names = [
        f"{each.expected.script.stem} ({-(each.fell_by or 0) / MIB:,.0f} MiB)" for each in outcomes if each.is_disproved
    ]
    told = "where the accepted fix made the peak higher, as measured,\n  so that the expected cause was none"
    return f"\n- Not counted: {', '.join(names)}, {told}." if names else ""


def _score(outcomes: list[Outcome], folder: str) -> str:
    members = [each for each in outcomes if each.expected.path.startswith(folder) and not each.is_disproved]
    return f"{sum(outcome.place == 1 for outcome in members)} of {len(members)}"


def _rows(outcomes: list[Outcome]) -> str:
    head = ("script", "expected", "place", "MiB", "simulated", "measured", "first finding")
    return table(head, [_row(outcome) for outcome in sorted(outcomes, key=lambda each: each.expected.path)])


def _row(outcome: Outcome) -> tuple[str, ...]:
    expected, place = outcome.expected, outcome.place
    finding = (outcome.report.findings or ())[place - 1] if place and outcome.report else None
    first = outcome.first.rule if outcome.first else "none" if outcome.report else "no answer"
    sizes = (finding.bytes if finding else None, outcome.falls_by, outcome.fell_by)
    shown = "" if place == 1 else first
    return Path(expected.path).stem, expected.rule, str(place or "-"), *map(_mib, sizes), shown


def _mib(num_bytes: int | None) -> str:
    return "" if num_bytes is None else f"{num_bytes / MIB:,.0f}"


def main() -> None:
    """Run all of it."""
    parser = argparse.ArgumentParser(prog="make causes", description=__doc__)
    parser.add_argument("--only", nargs="+", metavar="PREFIX", help="only these scripts; no page")
    parser.add_argument("--jobs", type=int, default=2, metavar="N", help="simulations at a time (default: 2)")
    options = parser.parse_args()
    chosen = [each for each in expected_causes() if not options.only or each.path.startswith(tuple(options.only))]
    with ThreadPoolExecutor(options.jobs) as pool:
        outcomes = list(pool.map(outcome_of, chosen))
    print(page(outcomes))
    if not options.only:
        PAGE.write_text(page(outcomes), encoding="utf-8")


if __name__ == "__main__":
    main()
