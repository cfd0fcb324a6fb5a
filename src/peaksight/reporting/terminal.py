"""The report in a terminal: plain when piped or under NO_COLOR, readable from 80 columns on."""

import re
from collections.abc import Iterator

from rich.console import Console, RenderableType
from rich.table import Table
from rich.text import Text

from peaksight.records import Phase, Report
from peaksight.reporting import why
from peaksight.reporting.bars import Glyphs, bar_width, glyphs_for, memory_bar, share_bar
from peaksight.reporting.cards import card_answer, cards_title, differences, on_card, row_name
from peaksight.reporting.rows import by_category, by_place, ends
from peaksight.reporting.sentences import NOT_REACHED, blocks, failure_lines, footer, peak_lines, unknown_size, verdict
from peaksight.reporting.tables import columns
from peaksight.reporting.wrapping import MAX_WIDTH, NARROW, print_sentence
from peaksight.units import format_bytes

NUM_HOLDERS = 10
NUM_NOT_REACHED = 10
NUM_WRITES = 5
NUM_STEPS = 8

# What the columns beside module and line take, with the space between them, and that of the share among them.
_HOLDER_COLUMNS = 41
_SHARE_COLUMNS = 9
_MIN_MODULE_WIDTH = 14

_VERDICT_STYLES = {True: "bold green", False: "bold red", None: "bold yellow"}


def render_report(report: Report, console: Console, *, show_all: bool = False) -> None:
    """Print `report` on `console`; the verdict comes first.

    With `show_all` the causes that were refuted are there too.
    """
    page = _Page(report, glyphs_for(console.encoding), min(console.width, MAX_WIDTH), show_all=show_all)
    style = _VERDICT_STYLES[report.fits]
    print_sentence(console, verdict(report), style)
    for title, body in page.sections():
        console.print()
        console.print(Text(title, style="bold"))
        console.print(body, soft_wrap=False, width=page.width)
    console.print()
    print_sentence(console, page.footer(), "dim")


class _Page:
    """The sections of one report, laid out for one width."""

    def __init__(self, report: Report, glyphs: Glyphs, width: int, *, show_all: bool) -> None:
        self.report = report
        self.show_all = show_all
        self.glyphs = glyphs
        self.width = width

    def sections(self) -> Iterator[tuple[str, RenderableType]]:
        """Titles and bodies; a section without content is left out."""
        report, on = self.report, on_card(self.report)
        if len(report.devices) > 1:
            yield cards_title(report), self._cards()
        if report.rank_differences:
            yield f"Why the ranks differ: rank {report.rank} holds", _lines(differences(report))
        if report.oom is not None:
            yield f"Predicted failure{on}", _lines(failure_lines(report.oom))
        if report.live_at_peak:
            yield f"Predicted peak{on}", _lines(peak_lines(report.peak))
        if report.steps:
            yield f"Steps{on}", self._steps()
        if report.programs:
            yield "Jitted functions", self._programs()
        if report.live_at_peak:
            yield "Alive at the peak", self._categories()
            yield "Largest holders", self._holders()
        if report.findings:
            yield why.WHY, self._findings()
        if fixes := why.estimated_fixes(report):
            yield why.fixes_title(report), self._fixes(fixes)
        if self.show_all and report.examined:
            yield why.EXAMINED, self._examined()
        if report.not_reached_lines:
            yield NOT_REACHED, self._not_reached()
        if report.not_simulated:
            yield "Not simulated", self._not_simulated()
        if report.writes:
            yield "Written to a scratch place, not to your files", self._writes()

    def footer(self) -> str:
        """Versions, how the run ended, how long it took."""
        return f" {self.glyphs.dot} ".join(footer(self.report))

    def _steps(self) -> Table:
        table = columns(">", "<", ">", ">", header=("step", self._legend(), "allocated", "reserved"))
        shown = ends(list(enumerate(self.report.steps, start=1)), NUM_STEPS)
        for number, step in shown:
            sizes = (step.peak_allocated_bytes, step.peak_reserved_bytes)
            table.add_row(str(number), self._bar(*sizes), *map(format_bytes, sizes))
        return table

    def _cards(self) -> Table:
        name = cards_title(self.report)[:-1].lower()
        table = columns("<", "<", ">", ">", "<", header=(name, "", "allocated", "reserved", ""))
        scale = max(card.usable_bytes for card in self.report.devices)
        scale = max(scale, *(card.peak.reserved_bytes for card in self.report.devices))
        for card in self.report.devices:
            sizes = (card.peak.allocated_bytes, card.peak.reserved_bytes)
            bar = memory_bar(*sizes, card.usable_bytes, scale, self.width - 56, self.glyphs)
            table.add_row(row_name(self.report, card), bar, *map(format_bytes, sizes), card_answer(card))
        return table

    def _legend(self) -> Text:
        limit = format_bytes(self.report.gpu.usable_bytes)
        glyphs = self.glyphs
        return Text(f"{glyphs.full} allocated  {glyphs.light} reserved  {glyphs.limit} usable {limit}")

    def _bar(self, allocated_bytes: int, reserved_bytes: int) -> Text:
        usable = self.report.gpu.usable_bytes
        scale = max(usable, *(step.peak_reserved_bytes for step in self.report.steps), 1)
        return memory_bar(allocated_bytes, reserved_bytes, usable, scale, self.width - 40, self.glyphs)

    def _programs(self) -> Table:
        parts = ("arguments", "outputs", "temporary") if self.width >= NARROW else ()
        header = ("function", "first in", "calls", "peak", *parts)
        table = columns("<", "<", *(">" * (2 + len(parts))), header=header)
        for each in sorted(self.report.programs, key=lambda each: -each.peak_bytes)[:NUM_HOLDERS]:
            sizes = (each.peak_bytes, each.argument_bytes, each.output_bytes, each.temporary_bytes)[: 1 + len(parts)]
            phase = "training" if each.phase is Phase.FORWARD else str(each.phase)
            table.add_row(Text(each.name), phase, str(each.num_calls), *map(format_bytes, sizes))
        return table

    def _categories(self) -> Table:
        peak_bytes = self.report.peak.allocated_bytes
        table = columns("<", "<", ">", ">", ">")
        for row in by_category(self.report.live_at_peak):
            bar = Text(share_bar(row.bytes, peak_bytes, bar_width(self.width), self.glyphs), style="cyan")
            table.add_row(row.category_words, bar, *self._sizes(row.bytes), _blocks(row.count))
        count = sum(holder.count for holder in self.report.live_at_peak)
        table.add_row("total", "", *self._sizes(peak_bytes), _blocks(count), style="bold")
        return table

    def _holders(self) -> Table:
        rows = by_place(self.report.live_at_peak)
        shown, others = rows[:NUM_HOLDERS], rows[NUM_HOLDERS:]
        room = self.width - _HOLDER_COLUMNS - max(len(row.source) for row in shown)
        has_shares = room >= _MIN_MODULE_WIDTH
        header = ("bytes", *(("share",) if has_shares else ()), "category", "module", "line")
        table = columns(*(">" * (len(header) - 3)), "<", "<", "<", header=header)
        # A module is wrapped before a line is.
        table.columns[-1].no_wrap = room + _SHARE_COLUMNS >= _MIN_MODULE_WIDTH
        for row in shown:
            module = shorten(row.module or "(outside any module)", room if has_shares else room + _SHARE_COLUMNS)
            table.add_row(*self._sizes(row.bytes)[: len(header) - 3], row.category_words, module, row.source)
        if others:
            sizes = self._sizes(sum(row.bytes for row in others))[: len(header) - 3]
            table.add_row(*sizes, f"{len(others)} others", "", "", style="dim")
        return table

    def _findings(self) -> Table:
        table = columns(">", "<")
        for finding in why.shown_findings(self.report, show_all=self.show_all):
            title = Text.assemble(finding.title, "  ", (finding.rule, "dim"))
            table.add_row(why.size_of(finding), title)
            for sentence in finding.evidence:
                table.add_row("", Text(f"{self.glyphs.dot} {sentence}", style="dim", overflow="fold"))
        return table

    def _fixes(self, fixes: tuple[why.EstimatedFix, ...]) -> Table:
        table = columns(">", "<", "<")
        for each in fixes:
            words = Text.assemble(each.fix.text, (f"  {each.rule}", "dim"))
            table.add_row(why.saving_of(each.fix), each.fix.effect, words)
        return table

    def _examined(self) -> Table:
        table = columns("<", "<", "<")
        for each in self.report.examined:
            table.add_row(each.rule, why.outcome_of(each), Text(each.why, style="dim"))
        return table

    def _not_reached(self) -> Table:
        lines = self.report.not_reached_lines
        table = columns("<", "<")
        for line in lines[:NUM_NOT_REACHED]:
            table.add_row(Text(line.at), Text(line.text, overflow="fold"))
        if others := lines[NUM_NOT_REACHED:]:
            table.add_row(f"{len(others)} others", "", style="dim")
        return table

    def _not_simulated(self) -> Table:
        table = columns(">", "<", "<")
        for unknown in self.report.not_simulated:
            table.add_row(unknown_size(unknown), Text(unknown.what), Text(unknown.slug, style="dim"))
        return table

    def _writes(self) -> Table:
        writes = sorted(self.report.writes, key=lambda write: -write.bytes)
        table = columns(">", "<")
        for write in writes[:NUM_WRITES]:
            table.add_row(format_bytes(write.bytes), Text(write.path, overflow="fold"))
        if others := writes[NUM_WRITES:]:
            table.add_row(format_bytes(sum(write.bytes for write in others)), f"{len(others)} others", style="dim")
        return table

    def _sizes(self, num_bytes: int) -> tuple[str, str]:
        peak_bytes = self.report.peak.allocated_bytes
        return format_bytes(num_bytes), f"{100 * num_bytes / peak_bytes:.1f} %"


def _lines(lines: list[tuple[str, int, str]]) -> Table:
    """Named numbers and what they mean; where and when is what matters most."""
    table = columns("<", ">", "<")
    for position, (name, num_bytes, note) in enumerate(lines):
        table.add_row(name, format_bytes(num_bytes), Text(note, style="dim" if position else ""))
    return table


def _blocks(count: int) -> Text:
    return Text(blocks(count), style="dim")


def shorten(module: str, width: int) -> Text:
    """The end of a module path, cut where a part begins: it tells more than the beginning. A part alone is wrapped."""
    parts = re.findall(r"[^.\[]+|[.\[][^.\[]*", module)
    while len(parts) > 1 and len("".join(parts).lstrip(".")) > width - 2:
        parts = parts[1:]
    end = "".join(parts)
    return Text(module if len(module) <= width or end == module else ".." + end.lstrip("."), overflow="fold")
