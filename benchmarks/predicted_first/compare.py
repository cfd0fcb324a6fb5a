"""Prints what was predicted first beside what was measured then."""

import json
from pathlib import Path

HERE = Path(__file__).parent


def main():
    """One line a workload and statistic."""
    for name, predicted in json.loads((HERE / "predicted.json").read_text()).items():
        file = HERE / "measured" / f"{name}.json"
        if not file.exists():
            print(f"{name:14s} not measured")
            continue
        measured = json.loads(file.read_text())
        for what in ("allocated", "reserved"):
            ours, theirs = predicted[f"predicted_{what}_bytes"], measured[f"peak_{what}"]
            error = 100 * (ours / theirs - 1)
            print(f"{name:14s} {what:10s} predicted {ours:>14,d}  measured {theirs:>14,d}  {error:+.3f} %")


if __name__ == "__main__":
    main()
