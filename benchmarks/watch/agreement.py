"""Compares the records of `benchmarks/watch/two_ranks.py` with the peaks that the script printed.

python -m benchmarks.watch.agreement DIRECTORY LOG --out benchmarks/watch/measured/two_ranks.json
"""

import argparse
import json
from pathlib import Path

from peaksight.records.watched_file import read_watched


def main() -> None:
    """Write for each rank how many steps agree to the byte."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("directory", type=Path)
    parser.add_argument("log", type=Path)
    parser.add_argument("--out", type=Path, required=True)
    args = parser.parse_args()
    printed = [json.loads(line[line.index("{") :]) for line in args.log.read_text().splitlines() if '"peaks"' in line]
    peaks = {line["rank"]: line["peaks"] for line in printed}
    ranks = []
    for path in sorted(args.directory.glob("*.jsonl")):
        watched = read_watched(path)
        recorded = [step.peak_allocated_bytes for step in watched.steps]
        torch_says = peaks.get(watched.process.rank, [])
        equal = sum(ours == theirs for ours, theirs in zip(recorded, torch_says, strict=False))
        ranks.append(
            {
                "rank": watched.process.rank,
                "steps": len(recorded),
                "equal_to_the_byte": equal,
                "peaks": recorded,
                "printed": torch_says,
                "retries": sum(step.retries for step in watched.steps),
                "events": [event.kind for event in watched.events],
                "exit_code": watched.end.exit_code if watched.end else None,
            }
        )
    args.out.write_text(json.dumps(ranks, indent=1) + "\n")
    print(json.dumps(ranks))


if __name__ == "__main__":
    main()
