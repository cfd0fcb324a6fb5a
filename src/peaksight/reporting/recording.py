"""The page of `peaksight read` for a memory snapshot: what was alive, where, and what kept reserved memory."""

from collections.abc import Iterable, Iterator
from itertools import pairwise

from rich.console import Console, RenderableType
from rich.padding import Padding
from rich.table import Table
from rich.text import Text

from peaksight.records import Holder
from peaksight.records.recording import Fragmentation, Pin, RecordingReport
from peaksight.reporting.bars import Glyphs, bar_width, glyphs_for, share_bar
from peaksight.reporting.reading import causes_table
from peaksight.reporting.recording_sentences import (
    CANNOT_TELL,
    IN_LIBRARIES,
    PINS,
    RUN_NEXT,
    TRY_FIRST,
    WHY,
    Number,
    failure_numbers,
    fragmentation_numbers,
    happened,
    holders,
    origin,
    peak_numbers,
    place_words,
)
from peaksight.reporting.rows import by_category
from peaksight.reporting.sentences import blocks
from peaksight.reporting.tables import columns
from peaksight.reporting.wrapping import MAX_WIDTH, NARROW, print_sentence
from peaksight.units import format_bytes

NUM_HOLDERS = 10
NUM_PINS = 8
NUM_SEGMENTS = 5
_LEVELS = " \u2581\u2582\u2583\u2584\u2585\u2586\u2587\u2588"
_ASCII_LEVELS = " .:-=+*#@"


def render_recording(report: RecordingReport, console: Console) -> None:
    """Print `report` on `console`; what happened comes first."""
    page = _Page(report, glyphs_for(console.encoding), min(console.width, MAX_WIDTH))
    print_sentence(console, happened(report), "bold red" if report.oom else "bold")
    for title, body in page.sections():
        console.print()
        console.print(Text(title, style="bold"))
        console.print(body, soft_wrap=False, width=page.width)
    console.print()
    print_sentence(console, f" {page.glyphs.dot} ".join(origin(report)), "dim")


def recording_sections(report: RecordingReport, console: Console) -> Iterator[tuple[str, RenderableType]]:
    """The sections of `report`, for a page that has more than them."""
    page = _Page(report, glyphs_for(console.encoding), min(console.width, MAX_WIDTH))
    return page.sections()


class _Page:
    """The sections of one report, laid out for one width."""

    def __init__(self, report: RecordingReport, glyphs: Glyphs, width: int) -> None:
        self.report = report
        self.glyphs = glyphs
        self.width = width

    def sections(self) -> Iterator[tuple[str, RenderableType]]:
        """Titles and bodies; a section without content is left out."""
        report = self.report
        if report.causes:
            yield WHY, _indented(causes_table(report.causes))
            yield TRY_FIRST, _indented(Text(report.causes[0].try_first))
        if report.oom is not None:
            yield "The failure", _numbers(failure_numbers(report.oom))
        yield "The peak", _numbers(peak_numbers(report.peak))
        if len(report.timeline) > 1:
            yield "Allocated, over the recorded events", self._timeline()
        if report.live_at_peak:
            yield "Alive at the peak", self._categories()
            yield "Largest holders", self._holders(report.live_at_peak)
        if report.live_in_libraries:
            yield IN_LIBRARIES, self._holders(report.live_in_libraries)
        if report.fragmentation.unused_bytes:
            when = "the failure" if report.fragmentation.at_failure else "the peak"
            yield f"Reserved and not used, at {when}", _numbers(fragmentation_numbers(report))
        if report.fragmentation.pins:
            yield PINS, self._pins(report.fragmentation)
            yield "Largest segments that are partly free", _segments(report.fragmentation)
        if report.other_devices:
            yield "Other devices", self._other_devices()
        if report.cannot_tell:
            yield CANNOT_TELL, _lines(report.cannot_tell)
        if report.run_next:
            yield RUN_NEXT, _indented(Text(report.run_next, style="bold"))

    def _timeline(self) -> Text:
        """A line of characters, as high as what was allocated; the most of each part shows."""
        levels = _ASCII_LEVELS if self.glyphs.full == "#" else _LEVELS
        points = self.report.timeline
        width = min(len(points), self.width - 2)
        top = max(1, self.report.peak.allocated_bytes)
        bounds = [len(points) * column // width for column in range(width + 1)]
        most = (max(p.allocated_bytes for p in points[a:b]) for a, b in pairwise(bounds))
        return Text(" " + "".join(levels[-(-size * (len(levels) - 1) // top)] for size in most), style="cyan")

    def _categories(self) -> Table:
        table = columns("<", "<", ">", ">", ">")
        for row in by_category(self.report.live_at_peak):
            bar = Text(
                share_bar(row.bytes, self.report.peak.allocated_bytes, bar_width(self.width), self.glyphs), style="cyan"
            )
            table.add_row(row.category_words, bar, *self._sizes(row.bytes), Text(blocks(row.count), style="dim"))
        count = sum(holder.count for holder in self.report.live_at_peak)
        total = self._sizes(self.report.peak.allocated_bytes)
        table.add_row("total", "", *total, Text(blocks(count), style="dim"), style="bold")
        return table

    def _holders(self, live: Iterable[Holder]) -> Table:
        """Modules are known of a capsule only."""
        rows = holders(live)
        has_modules = any(row.module for row in rows)
        header = ("bytes", "share", "category", *(("module",) if has_modules else ()), "line", "blocks")
        table = columns(">", ">", "<", *("<" if has_modules else ""), "<", ">", header=header)
        for row in rows[:NUM_HOLDERS]:
            places = (row.module, row.source) if has_modules else (row.source,)
            cells = (Text(place, overflow="fold") for place in places)
            table.add_row(*self._sizes(row.bytes), row.category_words, *cells, str(row.count))
        if others := rows[NUM_HOLDERS:]:
            table.add_row(*self._sizes(sum(row.bytes for row in others)), f"{len(others)} others", style="dim")
        return table

    def _pins(self, found: Fragmentation) -> Table:
        numbers = ("kept alone", *(("with others",) if self.width >= NARROW else ()), "segments", "by")
        table = columns(*(">" * len(numbers)), "<", "<", header=(*numbers, "category", "line"))
        for pin in found.pins[:NUM_PINS]:
            place = Text(place_words(pin.source), overflow="fold")
            alone, shared, *rest = _pin(pin)
            table.add_row(
                alone, *((shared,) if self.width >= NARROW else ()), *rest, pin.category.replace("_", " "), place
            )
        if others := found.pins[NUM_PINS:]:
            alone = format_bytes(sum(pin.alone_bytes for pin in others))
            table.add_row(alone, *("" for _ in numbers[1:]), f"{len(others)} others", "")
        return table

    def _other_devices(self) -> Table:
        table = columns("<", ">", ">", header=("device", "allocated", "reserved"))
        for other in self.report.other_devices:
            sizes = (other.peak_allocated_bytes, other.peak_reserved_bytes)
            table.add_row(f"cuda:{other.device}", *map(format_bytes, sizes))
        return table

    def _sizes(self, num_bytes: int) -> tuple[str, str]:
        peak_bytes = max(1, self.report.peak.allocated_bytes)
        return format_bytes(num_bytes), f"{100 * num_bytes / peak_bytes:.1f} %"


def _pin(pin: Pin) -> tuple[str, ...]:
    shared = format_bytes(pin.kept_bytes - pin.alone_bytes)
    return format_bytes(pin.alone_bytes), shared, str(pin.num_segments), format_bytes(pin.held_bytes)


def _segments(found: Fragmentation) -> Table:
    table = columns(">", ">", "<", header=("segment", "free in it", "kept by"))
    for segment in found.segments[:NUM_SEGMENTS]:
        kept_by = ", ".join(map(place_words, segment.holders))
        sizes = format_bytes(segment.total_bytes), format_bytes(segment.free_bytes)
        table.add_row(*sizes, Text(kept_by, overflow="fold"))
    return table


def _numbers(numbers: Iterable[Number]) -> Table:
    table = columns("<", ">", "<")
    for position, (name, num_bytes, note) in enumerate(numbers):
        table.add_row(name, format_bytes(num_bytes), Text(note, style="dim" if position else ""))
    return table


def _indented(body: RenderableType) -> Padding:
    return Padding(body, (0, 0, 0, 1))


def _lines(lines: Iterable[str]) -> Table:
    table = columns("<", "<")
    for line in lines:
        table.add_row("-", Text(line))
    return table
