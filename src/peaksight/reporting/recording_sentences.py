"""What the report of a memory snapshot says in words, on every page of it."""

from collections.abc import Iterable
from dataclasses import replace

from peaksight.records import Holder, OutOfMemory, Peak, Phase
from peaksight.records.recording import RecordingReport
from peaksight.reporting import sentences
from peaksight.reporting.rows import Row, by_category, by_place
from peaksight.units import format_bytes

IN_LIBRARIES = "Of these, by line of the library that allocated"
WHY = "Why, probably"
TRY_FIRST = "Try first"
RUN_NEXT = "Run next, without a GPU: what a change would save"
PINS = "Bytes kept from being given back, and what keeps them"
CANNOT_TELL = "What the snapshot cannot tell"

# A name, bytes, and what they mean.
Number = tuple[str, int, str]

_NUM_CATEGORIES = 3
_WITHOUT_LINE = {
    Phase.BACKWARD: "(backward pass, without a line)",
    Phase.OPTIMIZER: "(optimizer, without a line)",
    Phase.OTHER: "(before the recording, or without a stack)",
}


def happened(report: RecordingReport) -> str:
    """What the snapshot shows, in one sentence."""
    if report.oom is not None:
        return _failed(report, report.oom)
    peak = report.peak
    at = moment(peak)
    return (
        f"Recorded peak {format_bytes(peak.allocated_bytes)} allocated / {format_bytes(peak.reserved_bytes)} reserved"
        f"{', ' if at else ''}{at}."
    )


def _failed(report: RecordingReport, oom: OutOfMemory) -> str:
    outcome = "Ran out of memory" if report.fits is False else "Ran out of memory and went on"
    at = moment(oom)
    unused = oom.reserved_bytes - oom.allocated_bytes
    because = ""
    if unused >= oom.requested_bytes:
        largest = format_bytes(report.fragmentation.largest_free_bytes)
        because = f"; {format_bytes(unused)} were reserved and not used, in pieces of up to {largest}"
    return (
        f"{outcome}{' ' if at else ''}{at}: asked for {format_bytes(oom.requested_bytes)} with "
        f"{format_bytes(oom.allocated_bytes)} allocated and {format_bytes(oom.reserved_bytes)} reserved, "
        f"{format_bytes(oom.free_bytes or 0)} of the card free{because}."
    )


def moment(at: Peak | OutOfMemory) -> str:
    """Where and when, as far as it is known: steps count from the beginning of the recording."""
    if at.step:
        return sentences.moment(at)
    if at.phase in (Phase.OTHER, Phase.INIT):
        return f"at {at.at}" if at.at else ""
    return sentences.moment(at).removesuffix(" of step 0").removesuffix(" in step 0")


def peak_numbers(peak: Peak) -> list[Number]:
    """Each number of the peak with its name and what it means."""
    return [
        ("allocated", peak.allocated_bytes, moment(peak)),
        ("reserved", peak.reserved_bytes, "the most at any time of the recording"),
        ("requested", peak.requested_bytes, "before rounding to blocks"),
    ]


def failure_numbers(oom: OutOfMemory) -> list[Number]:
    """Each number of the failure with its name and what it means."""
    largest = by_category(oom.live)[:_NUM_CATEGORIES]
    alive = ", ".join(f"{row.category_words} {format_bytes(row.bytes)}" for row in largest)
    return [
        ("asked for", oom.requested_bytes, moment(oom)),
        ("allocated", oom.allocated_bytes, alive),
        ("reserved", oom.reserved_bytes, "by PyTorch's allocator"),
        ("free", oom.free_bytes or 0, "of the card, for any process"),
    ]


def fragmentation_numbers(report: RecordingReport) -> list[Number]:
    """What is reserved beyond what is allocated, and why it could not serve."""
    found = report.fragmentation
    releasable = found.unused_bytes - found.inactive_split_bytes
    asked = "" if report.oom is None else f"; {format_bytes(report.oom.requested_bytes)} were asked for"
    return [
        ("not used", found.unused_bytes, f"of {format_bytes(found.reserved_bytes)} reserved"),
        ("kept", found.inactive_split_bytes, "in segments in which something is alive"),
        ("whole", releasable, "in segments that can be given back"),
        ("largest", found.largest_free_bytes, f"free piece{asked}"),
    ]


def holders(live: Iterable[Holder]) -> list[Row]:
    """One row for each category and line, with words where there is no line."""
    return by_place(placed(live))


def placed(live: Iterable[Holder]) -> tuple[Holder, ...]:
    """`live` with words in place of a line where there is none."""
    return tuple(holder if holder.source else replace(holder, source=_without_line(holder)) for holder in live)


def place_words(line: str) -> str:
    """A line, or what is known instead, as a table shows it."""
    return line if ":" in line else f"({line})"


def origin(report: RecordingReport) -> tuple[str, ...]:
    """Where this comes from."""
    events = f"{report.num_events:,} events, {report.num_allocations:,} allocations"
    settings = (f"PYTORCH_CUDA_ALLOC_CONF {report.allocator_settings}",) if report.allocator_settings else ()
    return report.file, f"cuda:{report.device}", events, *settings


def _without_line(holder: Holder) -> str:
    return _WITHOUT_LINE.get(holder.phase, "(without a line of the script)")
