"""`python -m benchmarks.watch`: writes docs/watch.md from what was measured."""

import json
import random
from collections.abc import Sequence
from pathlib import Path
from statistics import median
from typing import Any

from benchmarks.tables import table

HERE = Path(__file__).parent
PAGE = HERE.parents[1] / "docs" / "watch.md"
_RESAMPLINGS = 1000


def _pairs(changed: Sequence[float], unchanged: Sequence[float]) -> list[float]:
    return [one / other - 1 for one, other in zip(changed, unchanged, strict=False)]


def _range(ratios: list[float]) -> tuple[float, float]:
    """Between which 98 % of the medians of resampled pairs are."""
    draws = random.Random(0)
    medians = sorted(median(draws.choices(ratios, k=len(ratios))) for _ in range(_RESAMPLINGS))
    return medians[_RESAMPLINGS // 100], medians[-_RESAMPLINGS // 100]


def costs(seconds: dict[str, dict[str, list[float]]], changed: str, unchanged: str) -> str:
    """A row for each training."""
    rows = []
    for name, ways in seconds.items():
        ratios = _pairs(ways[changed], ways[unchanged])
        low, high = _range(ratios)
        rows.append(
            (
                name,
                f"{len(ratios)}",
                f"{median(ways[unchanged]) * 1000:.2f} ms",
                f"{median(ways[changed]) * 1000:.2f} ms",
                f"{median(ratios):+.1%}",
                f"{low:+.1%} to {high:+.1%}",
            )
        )
    return table(("training", "pairs", unchanged, changed, "slow-down", "range"), rows)


def agreement(ranks: list[dict[str, Any]]) -> str:
    """A row for each rank."""
    rows = [
        (str(rank["rank"]), str(rank["steps"]), str(rank["equal_to_the_byte"]), f"{max(rank['peaks']) >> 20} MiB")
        for rank in ranks
    ]
    return table(("rank", "steps", "peaks equal to the byte", "highest peak"), rows)


def main() -> None:
    """Write the page."""
    measured = json.loads((HERE / "measured" / "overhead.json").read_text())
    ranks = json.loads((HERE / "measured" / "two_ranks.json").read_text())
    seconds = measured.pop("seconds")
    PAGE.write_text(
        (HERE / "page.md")
        .read_text()
        .format(
            **measured,
            recorded=costs(seconds, "recorded", "not recorded"),
            history=costs(seconds, "history", "no history"),
            agreement=agreement(ranks),
        )
    )


if __name__ == "__main__":
    main()
