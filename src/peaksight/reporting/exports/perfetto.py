"""A run over its allocations as a trace for ui.perfetto.dev and chrome://tracing.

In the JSON of the Trace Event Format. A microsecond of the trace is a tick of the run: an allocation or a free. How
long it takes on a card is predicted for whole steps only, which have it among their arguments.
"""

from collections.abc import Iterator
from itertools import groupby
from typing import Any

import msgspec

from peaksight.records import Report
from peaksight.records.course import Course, PhaseSpan
from peaksight.reporting import rows
from peaksight.reporting.sentences import verdict

_STEPS, _PHASES = 1, 2
_THREADS = {_STEPS: "steps", _PHASES: "phases"}
_NUM_HOLDERS = 10

_Event = dict[str, Any]


def report_to_perfetto(report: Report) -> bytes:
    """Counters of allocated memory by category, slices of steps and phases, and marks of the peak and the failure."""
    trace = {
        "displayTimeUnit": "ms",
        "otherData": {"answer": verdict(report), "unit of time": "1 us is one allocation or free"},
        "traceEvents": list(_events(report)),
    }
    return msgspec.json.encode(trace)


def _events(report: Report) -> Iterator[_Event]:
    yield _metadata("process_name", f"{report.gpu.name}, cuda:{report.device} of rank {report.rank}")
    for thread, name in _THREADS.items():
        yield _metadata("thread_name", name, tid=thread)
    course = report.course
    if course is not None:
        yield from _counters(course)
        yield from _steps(report, course)
        yield from (_slice(span.phase.value, (span,), _PHASES, {"step": span.step}) for span in course.spans)
        yield from _marks(report, course)


def _metadata(name: str, value: str, tid: int = 0) -> _Event:
    return {"ph": "M", "pid": 0, "tid": tid, "name": name, "args": {"name": value}}


def _counters(course: Course) -> Iterator[_Event]:
    for part, tick in enumerate(course.ticks):
        held = {column.category.value: column.bytes[part] for column in course.held}
        yield _counter("allocated bytes", tick, {"total": course.allocated_bytes[part]})
        yield _counter("bytes by category", tick, held)


def _counter(name: str, tick: int, values: dict[str, int]) -> _Event:
    return {"ph": "C", "pid": 0, "tid": 0, "ts": tick, "name": name, "args": values}


def _steps(report: Report, course: Course) -> Iterator[_Event]:
    """A slice for each step; what no optimizer step ended has no report of its own."""
    told = dict(enumerate(report.steps, start=1))
    for step, spans in groupby(course.spans, key=lambda span: span.step):
        about = {}
        if (of_step := told.get(step)) is not None:
            about = {
                "peak_allocated_bytes": of_step.peak_allocated_bytes,
                "peak_reserved_bytes": of_step.peak_reserved_bytes,
                "predicted_seconds": of_step.predicted_seconds,
            }
        yield _slice(f"step {step}", tuple(spans), _STEPS, about)


def _slice(name: str, spans: tuple[PhaseSpan, ...], thread: int, about: dict[str, Any]) -> _Event:
    first, end = spans[0].first_tick, spans[-1].last_tick + 1
    return {"ph": "X", "pid": 0, "tid": thread, "ts": first, "dur": end - first, "name": name, "args": about}


def _marks(report: Report, course: Course) -> Iterator[_Event]:
    peak, oom = report.peak, report.oom
    holders = [
        {"bytes": row.bytes, "category": row.category_words, "module": row.module, "line": row.source}
        for row in rows.by_place(report.live_at_peak)[:_NUM_HOLDERS]
    ]
    yield _mark("peak", course.peak_tick, {"allocated_bytes": peak.allocated_bytes, "at": peak.at, "holders": holders})
    if oom is not None and course.failed_tick is not None:
        about = {"requested_bytes": oom.requested_bytes, "allocated_bytes": oom.allocated_bytes, "at": oom.at}
        yield _mark("out of memory", course.failed_tick, about)


def _mark(name: str, tick: int, about: dict[str, Any]) -> _Event:
    """Across the whole process."""
    return {"ph": "i", "s": "p", "pid": 0, "tid": 0, "ts": tick, "name": name, "args": about}
