"""`make accuracy`: predict every measured workload, print the comparison, write docs/accuracy.md and its picture."""

import argparse
import sys
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

from benchmarks.accuracy.page import render_page
from benchmarks.accuracy.predictions import Prediction, predict
from benchmarks.accuracy.scores import score
from benchmarks.accuracy.workloads import Workload, on_two_ranks, predicted_first, workloads
from benchmarks.scatter import render_scatter

DOCS = Path(__file__).parents[2] / "docs"


def main() -> int:
    """Exit code 1 when a workload gave no report."""
    options = _parse()
    only = tuple(options.only)
    chosen, first, ranks = workloads(only), predicted_first(only), on_two_ranks(only)
    if not (chosen or first or ranks):
        sys.exit(f"No workload starts with {' or '.join(options.only)}; they are in benchmarks/truth/manifest.json.")
    predictions = list(_predict_all([*chosen, *first, *ranks], num_jobs=options.jobs))
    after_chosen, of_ranks = predictions[len(chosen) :], predictions[len(chosen) + len(first) :]
    page = render_page(predictions[: len(chosen)], after_chosen[: len(first)], of_ranks)
    print(page, end="")
    if options.only == [""]:
        (DOCS / "accuracy.md").write_text(page, encoding="utf-8")
        (DOCS / "accuracy.svg").write_text(render_scatter(points(predictions)), encoding="utf-8")
    return int(any(prediction.failure for prediction in predictions))


def points(predictions: Sequence[Prediction]) -> dict[str, list[tuple[int, int]]]:
    """Pairs of measured and predicted bytes."""
    scores = [score(prediction) for prediction in predictions if prediction.report]
    return {
        "reserved": [(s.measured_reserved_bytes, s.predicted_reserved_bytes) for s in scores],
        "allocated": [(s.measured_allocated_bytes, s.predicted_allocated_bytes) for s in scores],
    }


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
