"""The ranks of jobs that two cards measured."""

from collections.abc import Sequence

from benchmarks.accuracy.predictions import Prediction
from benchmarks.accuracy.scores import Score, score
from benchmarks.tables import table
from peaksight.records import Report
from peaksight.units import GIB

INTRODUCTION = """\
## Two ranks

DistributedDataParallel, FSDP2, ZeRO-1 and a loss on rank 0 only: each rank predicted on its own (`--rank`), measured on
one of two {device} (torch {torch}). [benchmarks/ranks](../benchmarks/ranks/README.md) has more, predicted first.

*Possibly more* is what the report says of the first buckets (`bucket-release`): on some ranks of a job they are there
for longer, on others not, and in the next run of the same job it is others."""
HEAD = ("rank", "allocated", "measured", "error", "reserved", "measured", "error", "possibly more")


def render_ranks(predictions: Sequence[Prediction]) -> str:
    """A section of Markdown; nothing without predictions."""
    known = [prediction for prediction in predictions if prediction.report]
    if not known:
        return ""
    measured = known[0].workload.measured
    introduction = INTRODUCTION.format(device=measured["device"], torch=measured["torch"])
    return "\n\n".join([introduction, table(HEAD, [(*memory_cells(score(one)), _late(one.report)) for one in known])])


def _late(report: Report | None) -> str:
    """The GiB of the first buckets, where they may raise the peak."""
    notes = report.not_simulated if report else ()
    most = max((note.at_most_bytes or 0 for note in notes if note.slug == "bucket-release"), default=0)
    return f"{most / GIB:.3f}" if most else ""


def memory_cells(score: Score) -> tuple[str, ...]:
    """The name, and allocated and reserved GiB: predicted, measured, and the error."""
    return (
        score.name,
        f"{score.predicted_allocated_bytes / GIB:.3f}",
        f"{score.measured_allocated_bytes / GIB:.3f}",
        f"{score.allocated_error:+.2%}",
        f"{score.predicted_reserved_bytes / GIB:.3f}",
        f"{score.measured_reserved_bytes / GIB:.3f}",
        f"{score.reserved_error:+.2%}",
    )
