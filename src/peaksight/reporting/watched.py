"""The report of a watched run in a terminal, and in sentences."""

from collections.abc import Iterable

from rich.console import Console
from rich.table import Table
from rich.text import Text

from peaksight.records.watched_report import WatchedRank, WatchedReport
from peaksight.reporting.wrapping import MAX_WIDTH, NARROW, print_sentence
from peaksight.units import format_bytes

NUM_EVENTS = 20


def render_watched(report: WatchedReport, console: Console) -> None:
    """Print `report` on `console`: what happened, a row for each rank, and what went wrong."""
    width = min(console.width, MAX_WIDTH)
    print_sentence(console, happened(report), "bold")
    console.print()
    console.print(_table(report, width), width=width)
    if said := [f"rank {rank.rank}, step {each.step}: {each.text}" for rank in report.ranks for each in rank.events]:
        console.print()
        console.print(Text("Events", style="bold"))
        console.print(_lines(said[:NUM_EVENTS], len(said) - NUM_EVENTS), width=width)
    console.print()
    print_sentence(console, f"run {report.run}: {' '.join(report.argv)}", "dim")


def happened(report: WatchedReport) -> str:
    """The fullest rank in one sentence."""
    if not any(rank.num_steps for rank in report.ranks):
        return "No step of the run was recorded."
    most = fullest(report)
    which = f"Rank {most.rank} of {report.world_size}" if report.world_size > 1 else "The run"
    return (
        f"{which} peaked at {format_bytes(most.peak_allocated_bytes)} allocated / "
        f"{format_bytes(most.peak_reserved_bytes)} reserved (measured), in step {most.peak_step} of "
        f"{most.num_steps}{_prediction(most)}."
    )


def fullest(report: WatchedReport) -> WatchedRank:
    """The rank and card that reserved most."""
    return max(report.ranks, key=lambda rank: rank.peak_reserved_bytes)


def _prediction(rank: WatchedRank) -> str:
    if rank.worst_error is None:
        return ""
    return f"; the prediction is off by {100 * abs(rank.worst_error):.1f} % at most, in step {rank.worst_step}"


def ending(rank: WatchedRank) -> str:
    """How a rank ended, in a few words."""
    if rank.exit_code is None:
        return "no end was recorded"
    return "ended well" if rank.exit_code == 0 else f"ended with {rank.exit_code}: {rank.error}".rstrip(": ")


def error_words(rank: WatchedRank) -> str:
    """By how much the prediction is off, empty without one."""
    return "" if rank.worst_error is None else f"{100 * rank.worst_error:+.1f} %"


def _table(report: WatchedReport, width: int) -> Table:
    """One row for each rank and card, with how it ended where there is room."""
    header = ["rank", "steps", "allocated", "reserved", "a step", "retries", "prediction"]
    table = Table(box=None, header_style="dim", padding=(0, 1))
    for title in header[: 5 if width < NARROW else 7]:
        table.add_column(title, justify="right", no_wrap=True)
    table.add_column("", overflow="fold")
    for rank in report.ranks:
        sizes = map(format_bytes, (rank.peak_allocated_bytes, rank.peak_reserved_bytes))
        numbers = [str(rank.rank), str(rank.num_steps), *sizes, f"{rank.seconds:.3g} s", str(rank.retries)]
        table.add_row(*[*numbers, error_words(rank)][: 5 if width < NARROW else 7], ending(rank))
    return table


def _lines(lines: Iterable[str], num_more: int) -> Table:
    table = Table(box=None, show_header=False, padding=(0, 1))
    table.add_column(no_wrap=True)
    table.add_column(overflow="fold")
    for line in lines:
        table.add_row("-", Text(line))
    if num_more > 0:
        table.add_row("", f"{num_more} more in the JSON", style="dim")
    return table
