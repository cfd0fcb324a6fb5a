"""Measures on a real GPU what was predicted for it and was not measured yet: `python measure.py CARD OUT [--trace]`.

Nothing of peaksight is needed. The measurements of OUT belong into `measured`.
"""

import argparse
import json
import subprocess
import sys
from datetime import date
from pathlib import Path

HERE = Path(__file__).parent
SUITE = HERE.parent / "truth" / "suite.py"
GIB = 2**30


def manifest(card: str, prefixes: list[str]) -> list[dict]:
    """What suite.py is to run, each with the GiB that it reserves of the card."""
    predicted = json.loads((HERE / "predicted.json").read_text())
    wanted = {key: record for key, record in predicted.items() if record.get("card") == card}
    return [
        {
            "id": key,
            "script": f"../../predicted_first/{record['directory']}/{record['argv'][0]}",
            "args": record["argv"][1:],
            "gib": record["predicted_reserved_bytes"] * 1.1 / GIB,
        }
        for key, record in wanted.items()
        if key.startswith(tuple(prefixes)) and not (HERE / "measured" / f"{key}.json").exists()
    ]


def main() -> None:
    """Run the suite, then date what it measured."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("card")
    parser.add_argument("out", type=Path)
    parser.add_argument("--only", nargs="+", default=[""], metavar="PREFIX")
    parser.add_argument("--jobs", default="4")
    parser.add_argument("--budget-gib", default="74", help="memory that runs at the same time may take (default: 74)")
    parser.add_argument("--seconds", default="500", help="after these nothing is started (default: 500)")
    parser.add_argument("--trace", action="store_true")
    options = parser.parse_args()
    options.out.mkdir(parents=True, exist_ok=True)
    (options.out / "manifest.json").write_text(json.dumps(manifest(options.card, options.only)))
    limits = ["--jobs", options.jobs, "--budget-gib", options.budget_gib, "--seconds", options.seconds]
    trace = ["--trace"] if options.trace else []
    subprocess.run([sys.executable, SUITE, options.out / "manifest.json", options.out, *limits, *trace], check=True)
    for file in options.out.glob(f"*-{options.card}.json"):
        file.write_text(json.dumps(json.loads(file.read_text()) | {"measured_on": str(date.today())}))


if __name__ == "__main__":
    main()
