"""`python -m benchmarks.plans.page` writes docs/plans.md from predicted.json and measured.json (`make plans`)."""

import json
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from benchmarks.plans.pairs import MEASURED, PREDICTED, Pair, all_pairs
from benchmarks.tables import table

PAGE = Path(__file__).parents[2] / "docs" / "plans.md"
GIB = 2**30


@dataclass(frozen=True, kw_only=True)
class Row:
    """One pair, predicted and measured."""

    pair: Pair
    predicted: dict[str, Any]
    runs: dict[str, dict[str, Any]]

    @property
    def plan(self) -> dict[str, Any]:
        """The measured run of the first plan below the limit."""
        return self.runs.get("plan, limited", {})

    @property
    def fits(self) -> bool:
        """Whether it went through below the limit."""
        return bool(self.plan.get("steps")) and not self.plan.get("oom")

    def error(self, kind: str) -> float:
        """Of the predicted peak of the plan, relative to the measured one."""
        return self.predicted["predicted"][kind] / self.plan[kind] - 1

    @property
    def slow_downs(self) -> tuple[float, float]:
        """The time of a step under the plan over that without it: predicted, and measured."""
        predicted = self.predicted["predicted"]["seconds"] / self.predicted["original"]["seconds"]
        return predicted, self.plan["seconds"] / self.runs["original"]["seconds"]

    @property
    def misses_tries(self) -> bool:
        """Whether none of the tries that are predicted to fit was measured."""
        fitting = {name for name, run in self.predicted["tries"].items() if run["reserved"] <= self.pair.limit_bytes}
        return bool(fitting) and not fitting & self.runs.keys()

    @property
    def best_try(self) -> tuple[str, float] | None:
        """The fastest of the expert's tries that stay below the limit, with its time over the original's."""
        original = self.runs["original"]["seconds"]
        fitting = {
            name: run["seconds"] / original
            for name, run in self.runs.items()
            if name in self.pair.tries and run.get("seconds") and run["reserved"] <= self.pair.limit_bytes
        }
        return min(fitting.items(), key=lambda each: each[1]) if fitting else None


def rows() -> list[Row]:
    """Those that were measured."""
    predicted, measured = (json.loads(path.read_text()) for path in (PREDICTED, MEASURED))
    return [
        Row(pair=pair, predicted=predicted[pair.name], runs=measured["pairs"][pair.name])
        for pair in all_pairs()
        if "plan, limited" in measured["pairs"].get(pair.name, {}) and pair.name in predicted
    ]


def page() -> str:
    """The whole page."""
    return "\n".join([*_head(), "", _table(), "", *_summary(), "", *_plans(), ""])


def _head() -> Iterator[str]:
    machine = json.loads(MEASURED.read_text())["machine"]
    yield "# Plans on a real card"
    yield ""
    yield "Written by `make plans`: for scripts of [benchmarks/truth](../benchmarks/truth/README.md) and a limit below"
    yield "what they need, the first plan of `peaksight fix --class noise` (predicted and committed before anything was"
    yield "measured), run below that limit (`set_per_process_memory_fraction`), and what an expert would try first:"
    yield "checkpoint everything, half the batch with accumulation, both. Classes up to *noise* are allowed, for"
    yield "another micro-batch draws other masks of dropout. Of the tries those are measured that are predicted to fit"
    yield "and to be the fastest, or within 15 % of that."
    yield ""
    measured = f"{machine['card']}, torch {machine['torch']}, {machine['date']}"
    gpus = ", ".join(sorted({row.predicted["gpu"] for row in rows()}))
    yield f"Predicted for an {gpus} with torch 2.14.1 and no GPU; measured on an {measured}."
    searched = {date: [row.pair.name for row in rows() if _searched(row) == date] for date in _dates()}
    yield "Searched on " + "; on ".join(f"{date}: {', '.join(names)}" for date, names in searched.items()) + "."
    yield "What plans come to is simulated anew since, by the rules and the figures of today."
    yield "*Time* is that of an optimizer step over the one of the script as it is; batches are loaded ahead."


def _dates() -> list[str]:
    return sorted({_searched(row) for row in rows()})


def _searched(row: Row) -> str:
    return str(row.predicted.get("searched", row.predicted["date"]))


def _table() -> str:
    header = ["script", "limit GiB", "needs", "plan fits", "peak predicted", "measured", "error"]
    header += ["time predicted", "measured", "error"]
    header += ["best of the tries", "its time"]
    return table(header, [_cells(row) for row in rows()])


def _cells(row: Row) -> list[str]:
    limit, needs = row.pair.limit_bytes / GIB, row.runs["original"].get("reserved", 0) / GIB
    cells = [row.pair.name, f"{limit:.1f}", f"{needs:.2f}", "yes" if row.fits else "no"]
    if not row.fits or not row.plan.get("seconds"):
        return cells + [""] * 8
    predicted, measured = row.slow_downs
    best = row.best_try
    return [
        *cells,
        f"{row.predicted['predicted']['reserved'] / GIB:.2f}",
        f"{row.plan['reserved'] / GIB:.2f}",
        f"{100 * row.error('reserved'):+.1f} %",
        f"x{predicted:.2f}",
        f"x{measured:.2f}",
        f"{100 * (predicted / measured - 1):+.0f} %",
        best[0] if best else "not measured" if row.misses_tries else "none fits",
        f"x{best[1]:.2f}" if best else "",
    ]


def _summary() -> Iterator[str]:
    found = [row for row in rows() if row.fits and row.plan.get("seconds")]
    timed = [predicted / measured - 1 for predicted, measured in (row.slow_downs for row in found)]
    peaks = [row.error("reserved") for row in found]
    tried = [row for row in found if not row.misses_tries]
    fastest = [row for row in tried if row.best_try is None or row.slow_downs[1] <= 1.02 * row.best_try[1]]
    yield f"- The first plan fits in {sum(row.fits for row in rows())} of {len(rows())}."
    near, as_slow = sum(abs(e) <= 0.05 for e in peaks), sum(abs(e) <= 0.15 for e in timed)
    yield f"- Its reserved peak is within 5 % of the predicted one in {near} of {len(found)}."
    yield f"- Its time is within 15 % of the predicted slow-down in {as_slow} of {len(found)}."
    yield f"- It is no slower (2 %) than the best of the tries that fit in {len(fastest)} of {len(tried)}."
    yield from _off(found)


def _off(found: list[Row]) -> Iterator[str]:
    """What is further off than 15 %, and why steps in which the card waits are."""
    errors = {row.pair.name: row.slow_downs[0] / row.slow_downs[1] - 1 for row in found}
    off = ", ".join(f"{name} ({100 * error:+.0f} %)" for name, error in errors.items() if abs(error) > 0.15)
    yield ""
    yield f"Further off than 15 %: {off or 'none'}."
    yield "Under these plans the host is predicted to be the slower one, and the time is that of Python. The"
    yield "predicted host has the mean speed of three sessions on virtual machines of one kind, of which one took 1.9"
    yield "times as long as another for the same ([times](times.md)); a plan that moves work from the card to the host"
    yield "is as uncertain. In an earlier session other processes loaded libraries beside each run, and it took up to"
    yield "43 % longer (resnet50 with all blocks checkpointed); now each is alone. That scripts fail below the limit"
    yield "was measured in that one."


def _plans() -> Iterator[str]:
    yield "| script | plan | class | plans simulated | retries |"
    yield "| --- | --- | --- | --- | --- |"
    for row in rows():
        plan = row.predicted["plan"] or {}
        cells = [row.pair.name, row.predicted["title"], plan.get("effect", ""), row.predicted["plans"]]
        yield f"| {' | '.join(map(str, cells))} | {row.plan.get('retries', '')} |"


if __name__ == "__main__":
    PAGE.write_text(page(), encoding="utf-8")
