"""`python -m benchmarks.ranks.ddp.compare [FILE]`: the peaks of kinds.py, measured and as they are predicted today.

`FILE` has the lines that a simulated run of kinds.py printed; without it one is made. kinds-predicted.jsonl is what was
predicted before anything was measured.
"""

import json
import subprocess
import sys
from pathlib import Path

HERE = Path(__file__).parent
RUN = ("peaksight", "run", "--gpu", "h200", "--torch", "2.11+cu130", "--steps", "300", "--ranks", "2", "--rank", "0")


def lines_of(text: str) -> list[dict]:
    """The JSON lines of `text`."""
    return [json.loads(line) for line in text.splitlines() if line.startswith("{")]


def predict() -> str:
    """What kinds.py prints on the virtual GPU."""
    command = [sys.executable, "-m", *RUN, str(HERE / "kinds.py")]
    return subprocess.run(command, capture_output=True, text=True, check=True).stdout


def main() -> None:
    """Print a row for each kind and rank."""
    text = Path(sys.argv[1]).read_text() if len(sys.argv) > 1 else predict()
    predicted = {line["case"]: line for line in lines_of(text)}
    for measured in sorted(
        lines_of((HERE / "kinds-measured.jsonl").read_text()), key=lambda line: (line["case"], line["rank"])
    ):
        ours = predicted[measured["case"]]
        if "error" in ours:
            print(f"{measured['case']:16} rank {measured['rank']}  {ours['error']}")
            continue
        allocated = max(ours["peaks"]) / max(measured["peaks"]) - 1
        reserved = ours["reserved"] / measured["reserved"] - 1
        print(f"{measured['case']:16} rank {measured['rank']}  allocated {allocated:+.2%}  reserved {reserved:+.2%}")


if __name__ == "__main__":
    main()
