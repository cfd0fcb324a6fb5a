"""What a run needs at several values of a flag, as a table in a terminal."""

from rich.console import Console
from rich.table import Table

from peaksight.records.proposals import Outcome
from peaksight.records.sweep import SweepReport, SweptValue
from peaksight.reporting.wrapping import MAX_WIDTH, NARROW, print_sentence
from peaksight.units import format_bytes

_NARROW = ("reserved", "a step")
_WIDE = ("reserved", "allocated", "a step", "a sample")
COLUMNS = ("reserved", "allocated", "a step", "samples", "a sample")
_WIDTH_WITHCOLUMNS = 92


def render_sweep(found: SweepReport, console: Console) -> None:
    """Print `found` on `console`; the answer comes first."""
    words, style = _answer(found)
    print_sentence(console, words, style)
    console.print()
    width = min(console.width, MAX_WIDTH)
    console.print(_table(found, width), width=width)
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
    if _changes_nothing(found):
        size, tried = format_bytes(found.best.tried.outcome.reserved_bytes), len(found.rows)
        return (
            f"{found.flag} makes no difference: at each of {tried} values the run needs {size} of the {card} "
            "(predicted). Check that the script reads it.",
            "bold yellow",
        )
    which = "The largest that fits" if found.asked == "max-batch" else "The last one that fits"
    size = format_bytes(found.best.tried.outcome.reserved_bytes)
    return f"{which} the {card}: {found.flag} {found.best.value}, with {size} reserved (predicted).", "bold green"


def _changes_nothing(found: SweepReport) -> bool:
    """Whether several values all come to the same peaks, of as many samples."""
    outcomes = [row.tried.outcome for row in found.rows]
    same = {(each.error, each.samples, each.allocated_bytes, each.reserved_bytes) for each in outcomes}
    return len(outcomes) > 1 and len(same) == 1


def _card(found: SweepReport) -> tuple[str, str]:
    if found.best is None:
        return "On no card of the table a plan fits (predicted).", "bold red"
    size, title = format_bytes(found.best.tried.outcome.reserved_bytes), found.best.tried.candidate.title
    return f"The smallest card: {found.best.value}, {title}, with {size} reserved (predicted).", "bold green"


def _table(found: SweepReport, width: int) -> Table:
    """One row a value: of the columns those that there is room for, `fits` giving way to the lines of its words."""
    names = _NARROW if width < NARROW else _WIDE if width < _WIDTH_WITHCOLUMNS else COLUMNS
    plans = ("plan",) if found.asked == "cheapest" else ()
    table = Table(box=None, padding=(0, 1), header_style="dim")
    for title in (*plans, found.flag, *names, "fits"):
        is_words = title in ("plan", "fits", "--gpu")
        is_whole = title not in ("plan", "fits")
        table.add_column(title, justify="left" if is_words else "right", no_wrap=is_whole, overflow="fold")
    for row in found.rows:
        cells = cells_of(row)
        title = (row.tried.candidate.title,) if plans else ()
        table.add_row(*title, row.value, *(cells[name] for name in names), cells["fits"])
    return table


def cells_of(row: SweptValue) -> dict[str, str]:
    """What a row says in each of `COLUMNS` and in `fits`."""
    outcome = row.tried.outcome
    if outcome.error:
        return dict.fromkeys(COLUMNS, "") | {"fits": outcome.error}
    return {
        "reserved": format_bytes(outcome.reserved_bytes),
        "allocated": format_bytes(outcome.allocated_bytes),
        "a step": _milliseconds(outcome.seconds),
        "samples": str(outcome.samples or ""),
        "a sample": _milliseconds(_per_sample(outcome)),
        "fits": "yes" if row.tried.fits else f"no, {row.tried.verdict}",
    }


def _per_sample(outcome: Outcome) -> float | None:
    return outcome.seconds / outcome.samples if outcome.seconds and outcome.samples else None


def _milliseconds(seconds: float | None) -> str:
    """Three digits, or all in front of the point: 1.27, 159, 1273."""
    if seconds is None:
        return ""
    milliseconds = 1000 * seconds
    return f"{milliseconds:.0f} ms" if milliseconds >= 1000 else f"{milliseconds:.3g} ms"
