"""What `fix` found in a terminal: the plan, the others, what each fix does, and why others do not help."""

from collections.abc import Iterable, Iterator

from rich.console import Console, Group, RenderableType
from rich.table import Table
from rich.text import Text

from peaksight.records.proposals import FixReport, NotApplied, Outcome, Part, Risk, Tried, Written
from peaksight.reporting.certificate import render_certificate
from peaksight.reporting.wrapping import MAX_WIDTH, print_sentence
from peaksight.units import format_bytes


def render_fix(found: FixReport, console: Console) -> None:
    """Print `found` on `console`; the answer comes first."""
    words, style = _answer(found)
    print_sentence(console, words, style)
    for title, body in _sections(found):
        console.print()
        console.print(Text(title, style="bold"))
        console.print(body, width=min(console.width, MAX_WIDTH))
    if found.certificate:
        console.print(Text("\nVerified: the run under the plan against that without it", style="bold"))
        render_certificate(found.certificate, console)
    console.print()
    print_sentence(console, _footer(found), "dim")


def _answer(found: FixReport) -> tuple[str, str]:
    limit = f"{format_bytes(found.limit_bytes)} of {found.gpu}"
    if found.original.fits:
        return (
            f"Nothing to fix: as it is, the run needs {_size(found.original)} of the {limit} (predicted).",
            "bold green",
        )
    if found.best is None:
        beyond = format_bytes(found.smallest.outcome.reserved_bytes - found.limit_bytes)
        title = found.smallest.candidate.title
        return (
            f"No plan fits the {limit}: the smallest is {title} with {_size(found.smallest)} (predicted), "
            f"{beyond} too much.",
            "bold red",
        )
    return (
        f"Plan: {found.best.candidate.title}. Predicted peak {_size(found.best)} reserved of the {limit}, "
        f"{slow_down(found, found.best)}, {found.best.candidate.effect.value}.",
        "bold green",
    )


def answer_line(found: FixReport) -> str:
    """The answer in one sentence."""
    return _answer(found)[0]


def _size(tried: Tried) -> str:
    return format_bytes(tried.outcome.reserved_bytes)


def slow_down(found: FixReport, tried: Tried) -> str:
    """How much longer a step takes than without the plan."""
    before, seconds = found.original.outcome.seconds, tried.outcome.seconds
    if not before or seconds is None:
        return "time unknown"
    return f"{100 * (seconds / before - 1):+.0f} % time"


def _sections(found: FixReport) -> Iterator[tuple[str, RenderableType]]:
    plans = [each for each in (found.best, *found.runners_up) if each]
    if plans and not found.original.fits:
        yield "Plans that fit (predicted)", _plans(found, plans)
    if found.written:
        yield "Written into the script", _written(found.written)
    if found.next_plans:
        yield "Should the head room prove too small", _plans(found, found.next_plans)
    if found.parts:
        yield "What each fix does to the peak", _parts(found)
    rejected = [each for each in found.tried if not each.fits and len(each.candidate.kinds) == 1]
    if rejected:
        yield "Not enough by themselves", _rejected(rejected)
    if found.not_applied:
        yield "Not tried", _not_applied(found.not_applied)
    cautions = found.best.candidate.cautions if found.best else ()
    if cautions or found.risks:
        yield "What could still break it", _risks(found.risks, cautions)


def _plans(found: FixReport, plans: Iterable[Tried]) -> Table:
    table = _table(6, header=("plan", "reserved", "head room", "time a step", "", "class"))
    for each in plans:
        room = found.usable_bytes - each.outcome.reserved_bytes
        table.add_row(
            each.candidate.title,
            _size(each),
            format_bytes(room),
            _seconds(each.outcome),
            slow_down(found, each),
            each.candidate.effect.value,
        )
    return table


def _seconds(outcome: Outcome) -> str:
    return "" if outcome.seconds is None else f"{1000 * outcome.seconds:.0f} ms"


def _parts(found: FixReport) -> Table:
    table = _table(4, header=("", "alone", "peak is then in", "plan without it"))
    original = found.original.outcome
    table.add_row("as it is", format_bytes(original.reserved_bytes), place(original), "")
    for part in found.parts:
        table.add_row(*_part(part))
    if found.best:
        table.add_row("all together", _size(found.best), place(found.best.outcome), "")
    return table


def _part(part: Part) -> tuple[str, str, str, str]:
    without = part.left_out.error or f"{format_bytes(part.left_out.reserved_bytes)}, {place(part.left_out)}"
    return part.title, format_bytes(part.alone.reserved_bytes), place(part.alone), without


def place(outcome: Outcome) -> str:
    """Where the peak is."""
    at = f", {outcome.at}" if outcome.at else ""
    return f"{outcome.phase.value} of step {outcome.step}{at}"


def _rejected(rejected: Iterable[Tried]) -> Table:
    table = _table(2)
    for each in rejected:
        table.add_row(each.candidate.title, each.verdict)
    return table


def _not_applied(fixes: Iterable[NotApplied]) -> RenderableType:
    table = _table(2)
    for each in fixes:
        table.add_row(each.title, Group(each.why, Text(each.advice, style="dim")) if each.advice else each.why)
    return table


def _written(changes: Iterable[Written]) -> Table:
    table = _table(2)
    for each in changes:
        table.add_row(each.at or each.kind, each.words)
    return table


def _risks(risks: Iterable[Risk], cautions: Iterable[str]) -> Table:
    table = _table(2)
    for risk in risks:
        table.add_row("unknown" if risk.bytes is None else format_bytes(risk.bytes), risk.title)
    for caution in cautions:
        table.add_row("", caution)
    return table


def _table(columns: int, header: tuple[str, ...] = ()) -> Table:
    table = Table(box=None, show_header=bool(header), pad_edge=False, padding=(0, 2, 0, 1), header_style="dim")
    for index in range(columns):
        table.add_column(header[index] if header else "", overflow="fold")
    return table


def _footer(found: FixReport) -> str:
    count = len(found.tried)
    return f"device rules {found.torch} · {count} plans simulated · {found.seconds:.0f} s"
