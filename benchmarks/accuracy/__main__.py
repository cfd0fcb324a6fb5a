"""`make accuracy`: predict every measured workload, print the comparison, and write docs/accuracy.md."""

import argparse
import sys
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

from benchmarks.accuracy.page import render_page
from benchmarks.accuracy.predictions import Prediction, predict
from benchmarks.accuracy.scores import score
from benchmarks.accuracy.workloads import Workload, workloads

PAGE = Path(__file__).parents[2] / "docs" / "accuracy.md"


def main() -> int:
    """Exit code 1 when a workload gave no report."""
    options = _parse()
    chosen = workloads(tuple(options.only))
    if not chosen:
        sys.exit(f"No workload starts with {' or '.join(options.only)}; they are in benchmarks/truth/manifest.json.")
    predictions = list(_predict_all(chosen, num_jobs=options.jobs))
    page = render_page(predictions)
    print(page, end="")
    if options.only == [""]:
        PAGE.write_text(page, encoding="utf-8")
    return int(any(prediction.failure for prediction in predictions))


def _parse() -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="make accuracy", description=__doc__)
    parser.add_argument("--jobs", type=int, default=2, metavar="N", help="simulations at a time (default: 2)")
    parser.add_argument(
        "--only", nargs="+", default=[""], metavar="PREFIX", help="only these workloads; docs/accuracy.md is left alone"
    )
    return parser.parse_args()


def _predict_all(chosen: Sequence[Workload], *, num_jobs: int) -> Iterator[Prediction]:
    """Predictions in the order of `chosen`; each is told on stderr."""
    with ThreadPoolExecutor(num_jobs) as pool:
        for prediction in pool.map(predict, chosen):
            print(f"{prediction.workload.name}: {_told(prediction)}, {prediction.seconds:.0f} s", file=sys.stderr)
            yield prediction


def _told(prediction: Prediction) -> str:
    if prediction.failure:
        return prediction.failure
    errors = score(prediction)
    return f"allocated {errors.allocated_error:+.2%}, reserved {errors.reserved_error:+.2%}"


if __name__ == "__main__":
    sys.exit(main())
