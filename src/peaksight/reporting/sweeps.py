"""What a run needs at several values of a flag, as a table in a terminal."""

from rich.console import Console
from rich.table import Table

from peaksight.records.proposals import Outcome
from peaksight.records.sweep import SweepReport, SweptValue
from peaksight.reporting.wrapping import print_sentence
from peaksight.units import format_bytes


def render_sweep(found: SweepReport, console: Console) -> None:
    """Print `found` on `console`; the answer comes first."""
    words, style = _answer(found)
    print_sentence(console, words, style)
    console.print()
    console.print(_table(found))
    console.print()
    footer = f"{len(found.rows)} runs simulated · {found.seconds:.0f} s"
    print_sentence(console, footer, "dim")


def sweep_line(found: SweepReport) -> str:
    """The answer in one sentence."""
    return _answer(found)[0]


def _answer(found: SweepReport) -> tuple[str, str]:
    if found.asked == "cheapest":
        return _card(found)
    card = next((f"{format_bytes(row.limit_bytes)} of {row.gpu}" for row in found.rows), "card")
    if found.best is None:
        return f"None of the tried values of {found.flag} fits the {card} (predicted).", "bold red"
    which = "The largest that fits" if found.asked == "max-batch" else "The last one that fits"
    size = format_bytes(found.best.tried.outcome.reserved_bytes)
    return f"{which} the {card}: {found.flag} {found.best.value}, with {size} reserved (predicted).", "bold green"


def _card(found: SweepReport) -> tuple[str, str]:
    if found.best is None:
        return "On no card of the table a plan fits (predicted).", "bold red"
    size, title = format_bytes(found.best.tried.outcome.reserved_bytes), found.best.tried.candidate.title
    return f"The smallest card: {found.best.value}, {title}, with {size} reserved (predicted).", "bold green"


def _table(found: SweepReport) -> Table:
    table = Table(box=None, pad_edge=False, padding=(0, 2, 0, 1), header_style="dim")
    first = ["plan"] if found.asked == "cheapest" else []
    for title in (*first, found.flag, "reserved", "allocated", "time a step", "samples", "time a sample", "fits"):
        table.add_column(title, overflow="fold")
    for row in found.rows:
        table.add_row(*([row.tried.candidate.title] if found.asked == "cheapest" else []), *_row(row))
    return table


def _row(row: SweptValue) -> tuple[str, ...]:
    outcome = row.tried.outcome
    if outcome.error:
        return row.value, "", "", "", "", "", outcome.error
    return (
        row.value,
        format_bytes(outcome.reserved_bytes),
        format_bytes(outcome.allocated_bytes),
        _milliseconds(outcome.seconds),
        str(outcome.samples or ""),
        _milliseconds(_per_sample(outcome)),
        "yes" if row.tried.fits else f"no, {row.tried.verdict}",
    )


def _per_sample(outcome: Outcome) -> float | None:
    return outcome.seconds / outcome.samples if outcome.seconds and outcome.samples else None


def _milliseconds(seconds: float | None) -> str:
    return "" if seconds is None else f"{1000 * seconds:.3g} ms"
