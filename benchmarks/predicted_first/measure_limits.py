"""Runs on a real GPU what limits_predicted.json predicted and was not measured yet: `python measure_limits.py OUT`.

Nothing of peaksight is needed. Each run may reserve its limit of the card, by `set_per_process_memory_fraction`. What
it measures is appended to OUT/measured.jsonl as it comes, and belongs into limits_measured.jsonl.
"""

import argparse
import json
import subprocess
import sys
from pathlib import Path

HERE = Path(__file__).parent
SUITE = HERE.parent / "truth" / "suite.py"
PREDICTED, MEASURED = HERE / "limits_predicted.json", HERE / "limits_measured.jsonl"


def manifest(prefixes: list[str]) -> list[dict]:
    """What suite.py is to run, each with what it may reserve of the card, and a GiB for what is outside of that."""
    lines = MEASURED.read_text().splitlines() if MEASURED.exists() else []
    known = {json.loads(line)["id"] for line in lines}
    return [
        {
            "id": name,
            "script": f"../../predicted_first/{record['directory']}/{record['argv'][0]}",
            "args": record["argv"][1:],
            "gib": record["limit_mib"] / 1024,
            "cap_gib": record["limit_mib"] / 1024,
            "env": {"PYTORCH_CUDA_ALLOC_CONF": record["settings"]},
        }
        for name, record in json.loads(PREDICTED.read_text()).items()
        if name.startswith(tuple(prefixes)) and name not in known
    ]


def main() -> None:
    """Run the suite."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("out", type=Path)
    parser.add_argument("--only", nargs="+", default=[""], metavar="PREFIX")
    parser.add_argument("--jobs", default="6")
    parser.add_argument("--budget-gib", default="125", help="memory that runs at the same time may take (default: 125)")
    parser.add_argument("--seconds", default="360", help="after these nothing is started (default: 360)")
    parser.add_argument("--each-seconds", default="100", help="a run may take these (default: 100)")
    options = parser.parse_args()
    options.out.mkdir(parents=True, exist_ok=True)
    (options.out / "manifest.json").write_text(json.dumps(manifest(options.only)))
    limits = ["--jobs", options.jobs, "--budget-gib", options.budget_gib, "--seconds", options.seconds]
    limits += ["--each-seconds", options.each_seconds, "--one-file"]
    subprocess.run([sys.executable, SUITE, options.out / "manifest.json", options.out, *limits], check=True)


if __name__ == "__main__":
    main()
