"""Why a test needs more memory than its limit, for the output of a test runner."""

from collections.abc import Iterator

from peaksight.records import Report
from peaksight.reporting import why
from peaksight.reporting.rows import by_category, by_place
from peaksight.reporting.sentences import verdict
from peaksight.units import format_bytes

NUM_HOLDERS = 8


def needs_more(report: Report, needed_bytes: int, limit_bytes: int, what: str) -> str:
    """`needed_bytes` of `what` memory are predicted, `limit_bytes` allowed: by how much, where, and who holds it."""
    return "\n".join(_lines(report, needed_bytes, limit_bytes, what))


def _lines(report: Report, needed_bytes: int, limit_bytes: int, what: str) -> Iterator[str]:
    beyond = format_bytes(max(0, needed_bytes - limit_bytes))
    yield (
        f"needs {format_bytes(needed_bytes)} of GPU memory ({what}, predicted for {report.gpu.name}), {beyond} more "
        f"than the {format_bytes(limit_bytes)} of limit_gpu_memory"
    )
    if report.oom is not None:
        yield f"  {verdict(report)}"
    yield f"  peak at {report.peak.at or 'no line'} in the {report.peak.phase.value} of step {report.peak.step}"
    for row in by_category(report.live_at_peak):
        yield f"  {format_bytes(row.bytes):>12}  {row.category_words}"
    yield "  largest holders:"
    for row in by_place(report.live_at_peak)[:NUM_HOLDERS]:
        place = "  ".join(part for part in (row.category_words, row.module, row.source) if part)
        yield f"  {format_bytes(row.bytes):>12}  {place}"
    for finding in why.shown_findings(report):
        at = f" ({finding.at})" if finding.at else ""
        yield f"  why: {finding.title}{at}: {why.size_of(finding)}"
    for each in why.estimated_fixes(report):
        yield f"  would help: {each.fix.text} ({why.saving_of(each.fix)})"
