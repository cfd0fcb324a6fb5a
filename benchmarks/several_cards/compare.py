"""Prints what was predicted for each card beside what was measured: `python compare.py`."""

import json
from pathlib import Path

HERE = Path(__file__).parent


def main() -> None:
    """One line a task, card and statistic."""
    predicted = json.loads((HERE / "predicted.json").read_text())
    for measured in json.loads((HERE / "measured.json").read_text()):
        cards = zip(predicted[measured["task"]]["cards"], measured["cards"], strict=True)
        for index, (ours, theirs) in enumerate(cards):
            for what in ("allocated", "reserved"):
                error = 100 * (ours[f"predicted_{what}_bytes"] / theirs[f"peak_{what}"] - 1)
                print(f"{measured['task']:14s} cuda:{index} {what:10s} {error:+.3f} %")


if __name__ == "__main__":
    main()
