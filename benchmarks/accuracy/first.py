"""Workloads that were predicted before they were measured, on one kind of card and on another."""

from collections.abc import Iterator, Sequence
from statistics import median

from benchmarks.accuracy.predictions import Prediction
from benchmarks.accuracy.scores import Score, score
from benchmarks.accuracy.workloads import Workload
from benchmarks.tables import table
from peaksight.units import GIB

INTRODUCTION = """\
## Predicted first

Scripts of kinds absent from benchmarks/truth ([benchmarks/predicted_first](../benchmarks/predicted_first/README.md)),
and those of benchmarks/truth with other arguments (`vary-`): their peaks were predicted and committed, then measured,
and stay here whatever they show. *first* is the error of what was committed, *now* that of today's rules, some of which
were mended where these workloads showed a mistake. *GiB* is the measured peak of allocated memory."""
HEAD = ("workload", "card", "GiB", "allocated, first", "now", "reserved, first", "now")


def render_first(predictions: Sequence[Prediction]) -> str:
    """A section of Markdown; nothing without predictions."""
    known = [prediction for prediction in predictions if prediction.report]
    if not known:
        return ""
    rows = [_row(prediction.workload, score(prediction)) for prediction in known]
    return "\n\n".join(
        [INTRODUCTION, "\n".join(_cards([prediction.workload for prediction in known])), table(HEAD, rows)]
    )


def _cards(workloads: Sequence[Workload]) -> Iterator[str]:
    """What was committed for each card beside what it measured."""
    for gpu in dict.fromkeys(workload.gpu for workload in workloads):
        of_card = [workload for workload in workloads if workload.gpu == gpu]
        yield f"- {_measured_on(of_card)}: {len(of_card)} workloads, {_spread(of_card)}."


def _measured_on(workloads: Sequence[Workload]) -> str:
    """Card, release and dates."""
    measured = workloads[0].measured
    dates = " and ".join(sorted({workload.measured["measured_on"] for workload in workloads}))
    return f"{measured['device']}, torch {measured['torch']}, measured on {dates}"


def _spread(workloads: Sequence[Workload]) -> str:
    allocated = [abs(_first_error(workload, "allocated")) for workload in workloads]
    reserved = [abs(_first_error(workload, "reserved")) for workload in workloads]
    exact = sum(error == 0 for error in allocated)
    return (
        f"{exact} of them right to the byte on allocated; median error {median(allocated):.2%}, worst "
        f"{max(allocated):.2%}; on reserved {median(reserved):.2%} and {max(reserved):.2%}"
    )


def _row(workload: Workload, now: Score) -> tuple[str, ...]:
    return (
        workload.base_name,
        workload.gpu,
        f"{now.measured_allocated_bytes / GIB:.2f}",
        f"{_first_error(workload, 'allocated'):+.2%}",
        f"{now.allocated_error:+.2%}",
        f"{_first_error(workload, 'reserved'):+.2%}",
        f"{now.reserved_error:+.2%}",
    )


def _first_error(workload: Workload, peak: str) -> float:
    assert workload.first is not None
    return workload.first[f"predicted_{peak}_bytes"] / workload.measured[f"peak_{peak}"] - 1
