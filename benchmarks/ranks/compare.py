"""Prints what was predicted for each rank beside what was measured: `python compare.py N`."""

import json
import sys
from pathlib import Path

HERE = Path(__file__).parent


def main() -> None:
    """One line a task, rank and statistic."""
    predicted, measured = (json.loads((HERE / f"{what}-{sys.argv[1]}.json").read_text()) for what in FILES)
    for task, record in measured.items():
        predicted_task = predicted[task.removesuffix("-again")]
        for ours, theirs in zip(predicted_task["ranks"], record["ranks"], strict=True):
            for what in ("allocated", "reserved"):
                error = 100 * (ours[f"predicted_{what}_bytes"] / theirs[f"peak_{what}"] - 1)
                print(f"{task:16s} rank {theirs['rank']} {what:10s} {error:+.3f} %")


FILES = ("predicted", "measured")

if __name__ == "__main__":
    main()
