"""What `fix` found in a terminal: the plan, the others, what each fix does, and why others do not help."""

from collections.abc import Iterable, Iterator

from rich.console import Console, Group, RenderableType
from rich.table import Table
from rich.text import Text

from peaksight.records.proposals import FixReport, NotApplied, Outcome, Part, Risk, Tried, Written
from peaksight.reporting.certificate import render_certificate
from peaksight.reporting.tables import columns
from peaksight.reporting.wrapping import MAX_WIDTH, NARROW, print_sentence
from peaksight.units import format_bytes

_NOT_IN_THE_TIME = "what goes from card to card is not in the time"
_ON_MORE_CARDS = (
    "`fully_shard` of each block and of the model before the optimizer is made, started by `torchrun`",
    _NOT_IN_THE_TIME,
)
_ON_A_MESH = (
    "a `NamedSharding` on a mesh of the cards for what jitted functions take and return",
    "operations are those of all cards together; what goes from card to card is not among them",
)


def render_fix(found: FixReport, console: Console) -> None:
    """Print `found` on `console`; the answer comes first."""
    words, style = _answer(found)
    print_sentence(console, words, style)
    width = min(console.width, MAX_WIDTH)
    for title, body in _sections(found, width):
        console.print()
        console.print(Text(title, style="bold"))
        console.print(body, width=width)
    if found.certificate:
        console.print(Text("\nVerified: the run under the plan against that without it", style="bold"))
        render_certificate(found.certificate, console)
    console.print()
    print_sentence(console, _footer(found), "dim")


def _answer(found: FixReport) -> tuple[str, str]:
    limit = f"{format_bytes(found.limit_bytes)} of {found.gpu}"
    if found.original.fits:
        if _gives_back(found, found.original):
            return f"Nothing to fix: as it is, the run fits the {limit} {_giving_back(found.original)}.", "bold green"
        needs = f"the run needs {_size(found.original)} of the {limit} (predicted)"
        return f"Nothing to fix: as it is, {needs}.", "bold green"
    if found.best is None:
        smallest = found.smallest.outcome
        beyond = format_bytes(smallest.reserved_bytes - smallest.extra_bytes - found.limit_bytes)
        title = found.smallest.candidate.title
        return (
            f"No plan fits the {limit}: the smallest is {title} with {_size(found.smallest)} (predicted), "
            f"{beyond} too much.",
            "bold red",
        )
    limit = f"{format_bytes(found.limit_bytes + found.best.outcome.extra_bytes)} of {found.gpu}"
    peak = f"Predicted peak {_size(found.best)} reserved of the {limit}"
    if _gives_back(found, found.best):
        peak = f"It fits the {limit} {_giving_back(found.best)}"
    words = f"{slow_down(found, found.best)}, {found.best.candidate.effect.value}"
    return f"Plan: {found.best.candidate.title}. {peak}, {words}.", "bold green"


def _gives_back(found: FixReport, tried: Tried) -> bool:
    """Whether it reserves more than the limit where there is more, and comes by with the limit where there is not."""
    return tried.fits and tried.outcome.reserved_bytes > found.limit_bytes + tried.outcome.extra_bytes


def _giving_back(tried: Tried) -> str:
    retries = tried.outcome.retries_at_limit or 0
    times = "once" if retries == 1 else f"{retries} times"
    return f"by giving cached memory back {times}; without a limit it would reserve {_size(tried)} (predicted)"


def head_room_bytes(found: FixReport, tried: Tried) -> int:
    """What a plan leaves of the card; where it can give cached memory back, what it has to leave."""
    reserved_bytes = found.limit_bytes if _gives_back(found, tried) else tried.outcome.reserved_bytes
    return found.usable_bytes + tried.outcome.extra_bytes - reserved_bytes


def answer_line(found: FixReport) -> str:
    """The answer in one sentence."""
    return _answer(found)[0]


def _size(tried: Tried) -> str:
    return format_bytes(tried.outcome.reserved_bytes)


def slow_down(found: FixReport, tried: Tried) -> str:
    """How much longer a step takes than without the plan."""
    before, after = found.original.outcome, tried.outcome
    if before.seconds and after.seconds is not None:
        return f"{100 * (after.seconds / before.seconds - 1):+.0f} % time"
    if before.operations and after.operations:
        return f"{100 * (after.operations / before.operations - 1):+.0f} % operations"
    return "time unknown"


def _sections(found: FixReport, width: int) -> Iterator[tuple[str, RenderableType]]:
    plans = [each for each in (found.best, *found.runners_up) if each]
    if plans and not found.original.fits:
        yield "Plans that fit (predicted)", _plans(found, plans, width)
    if found.written:
        yield "Written into the script", _written(found.written)
    if found.next_plans:
        yield "Should the head room prove too small", _plans(found, found.next_plans, width)
    if found.on_more_cards:
        yield "On more cards (predicted for each)", _on_more_cards(found, width)
    if found.parts:
        yield "What each fix does to the peak", _parts(found)
    rejected = [each for each in found.tried if not each.fits and len(each.candidate.kinds) == 1]
    if rejected:
        yield "Not enough by themselves", _rejected(rejected)
    if found.not_applied and not found.original.fits:
        yield "Not tried", _not_applied(found.not_applied)
    cautions = found.best.candidate.cautions if found.best else ()
    if cautions or found.risks:
        yield "What could still break it", _risks(found.risks, cautions)


def _plans(found: FixReport, plans: Iterable[Tried], width: int) -> Table:
    """One row a plan; what it leaves of the card is left out where there is no room for it."""
    has_room = width >= NARROW
    work = "time a step" if found.original.outcome.seconds is not None else "operations"
    header = ("reserved", *(("head room",) if has_room else ()), work, "", "class", "plan")
    table = columns(*(">" * (len(header) - 2)), "<", "<", header=header)
    for each in plans:
        room = (format_bytes(head_room_bytes(found, each)),) if has_room else ()
        times = _work(each.outcome), slow_down(found, each).removesuffix(" time").removesuffix(" operations")
        table.add_row(_size(each), *room, *times, each.candidate.effect.value, Text(each.candidate.title))
    return table


def _on_more_cards(found: FixReport, width: int) -> RenderableType:
    """What takes several cards, with what speaks against it."""
    tried = [each for each in found.on_more_cards if not each.outcome.error]
    against = [each for each in found.on_more_cards if each.verdict]
    cautions = dict.fromkeys(caution for each in found.on_more_cards for caution in each.candidate.cautions)
    how = _ON_A_MESH if found.original.outcome.tier else _ON_MORE_CARDS
    return Group(_plans(found, tried, width), _rejected(against), _cautions((*how, *cautions)))


def _cautions(sentences: Iterable[str]) -> Table:
    table = columns("<", "<")
    for sentence in sentences:
        table.add_row("-", Text(sentence))
    return table


def _work(outcome: Outcome) -> str:
    """The time of a step, else its operations."""
    if outcome.seconds is not None:
        return f"{1000 * outcome.seconds:.0f} ms"
    return f"{outcome.operations / 1e12:.3g} T" if outcome.operations else ""


def _parts(found: FixReport) -> Table:
    table = columns(">", ">", "<", header=("alone", "all but it", ""))
    original = found.original.outcome
    table.add_row(format_bytes(original.reserved_bytes), "", _peaking("as it is", original))
    for part in found.parts:
        alone, without = part.alone, part.left_out
        left_out = "" if without.error else format_bytes(without.reserved_bytes)
        table.add_row(format_bytes(alone.reserved_bytes), left_out, Group(_peaking(part.title, alone), _without(part)))
    if found.best:
        table.add_row(_size(found.best), "", _peaking("all together", found.best.outcome))
    return table


def _peaking(title: str, outcome: Outcome) -> Text:
    return Text.assemble(title, (f": peak in the {place(outcome)}", "dim"))


def _without(part: Part) -> Text:
    without = part.left_out.error or f"peak in the {place(part.left_out)}"
    return Text(f"the plan without it: {without}", style="dim")


def place(outcome: Outcome) -> str:
    """Where the peak is."""
    at = f", {outcome.at}" if outcome.at else ""
    return f"{outcome.phase.value} of step {outcome.step}{at}"


def _rejected(rejected: Iterable[Tried]) -> Table:
    table = columns("<", "<")
    for each in rejected:
        table.add_row("-", Text.assemble(each.candidate.title, (f": {each.verdict}", "dim")))
    return table


def _not_applied(fixes: Iterable[NotApplied]) -> RenderableType:
    """One row for all of one reason, where there is no more to say of each."""
    table = columns("<", "<")
    titles: dict[tuple[str, str], list[str]] = {}
    for each in fixes:
        titles.setdefault((each.why, each.advice), []).append(each.title)
    for (why, advice), of_reason in titles.items():
        words = Text.assemble("; ".join(of_reason), (f": {why}", "dim"))
        table.add_row("-", Group(words, Text(advice)) if advice else words)
    return table


def _written(changes: Iterable[Written]) -> Table:
    table = columns("<", "<")
    for each in changes:
        table.add_row(each.at or each.kind, Text(each.words))
    return table


def _risks(risks: Iterable[Risk], cautions: Iterable[str]) -> Table:
    table = columns(">", "<")
    for risk in risks:
        table.add_row("unknown" if risk.bytes is None else format_bytes(risk.bytes), Text(risk.title))
    for caution in cautions:
        table.add_row("", Text(caution))
    return table


def _footer(found: FixReport) -> str:
    count = len(found.tried)
    tier = found.original.outcome.tier
    planned = f"memory as planned by {tier}" if tier else f"device rules {found.torch}"
    return f"{planned} · {count} plans simulated · {found.seconds:.0f} s"
