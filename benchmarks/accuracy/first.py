"""Workloads that were predicted before they were measured."""

from collections.abc import Sequence

from benchmarks.accuracy.predictions import Prediction
from benchmarks.accuracy.scores import Score, score
from benchmarks.tables import table

INTRODUCTION = """\
## Predicted first

Scripts of kinds absent from benchmarks/truth ([benchmarks/predicted_first](../benchmarks/predicted_first/README.md)):
their peaks were predicted and committed, then measured on the same kind of card, and stay here whatever they show.
*first* is the error of what was committed, *now* that of today's rules, some of which were mended where these workloads
showed a mistake."""
HEAD = ("workload", "allocated, first", "now", "reserved, first", "now")


def render_first(predictions: Sequence[Prediction]) -> str:
    """A section of Markdown; nothing without predictions."""
    rows = [_row(prediction, score(prediction)) for prediction in predictions if prediction.report]
    return "\n\n".join([INTRODUCTION, table(HEAD, rows)]) if rows else ""


def _row(prediction: Prediction, now: Score) -> tuple[str, ...]:
    return (
        now.name,
        _first_error(prediction, "allocated"),
        f"{now.allocated_error:+.2%}",
        _first_error(prediction, "reserved"),
        f"{now.reserved_error:+.2%}",
    )


def _first_error(prediction: Prediction, peak: str) -> str:
    workload = prediction.workload
    assert workload.first is not None
    return f"{workload.first[f'predicted_{peak}_bytes'] / workload.measured[f'peak_{peak}'] - 1:+.2%}"
