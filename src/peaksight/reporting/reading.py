"""The page of `peaksight read`: what happened, why probably, what to try first, what to run next."""

from collections.abc import Iterator

from rich.console import Console, RenderableType
from rich.padding import Padding
from rich.table import Table
from rich.text import Text

from peaksight.records import Cause, Confidence, Fit, JobReading, OomMessage, RankEnd, Reading
from peaksight.reporting.tables import columns
from peaksight.units import format_bytes

MAX_WIDTH = 110
NUM_CHECKS = 14
NUM_WRONG = 24
NUM_MESSAGES = 8
NUM_CAUSES = 4
NUM_RANKS = 16

_CONFIDENCE = {
    Confidence.CERTAIN: ("certain", "bold red"),
    Confidence.LIKELY: ("likely", "bold yellow"),
    Confidence.POSSIBLE: ("possible", "dim"),
}
# Checks of explanations in prose that have a section of their own.
_BY_NAME = {"tried": "Tried, without effect", "left-out": "Left out of the sum"}
_UNDECIDED = "Cannot tell the cause from this text. What such a text often comes from:"


def render_job(job: JobReading, console: Console) -> None:
    """Print which rank failed first, the others as one line each, and the page of the first."""
    width = min(console.width, MAX_WIDTH)
    console.print(Text(job.happened, style="bold"), width=width)
    console.print()
    console.print(Text("The other ranks", style="bold"))
    console.print(Padding(ranks_table(job.others), (0, 0, 0, 1)), width=width)
    console.print()
    render_reading(job.reading, console)


def render_reading(reading: Reading, console: Console) -> None:
    """Print `reading` on `console`; what happened comes first."""
    width = min(console.width, MAX_WIDTH)
    console.print(Text(reading.happened, style="bold"), width=width)
    for title, body in _sections(reading):
        console.print()
        console.print(Text(title, style="bold"))
        console.print(Padding(body, (0, 0, 0, 1)), width=width)
    console.print()
    console.print(Text(_footer(reading), style="dim"), width=width)


def _sections(reading: Reading) -> Iterator[tuple[str, RenderableType]]:
    """Titles and bodies; a section without content is left out."""
    if reading.causes:
        yield "Why, probably" if reading.decided else _UNDECIDED, causes_table(reading.causes)
        yield "Try first", Text(reading.causes[0].try_first)
    wrong = [check.text for check in reading.checks if not check.holds and check.name != "belief"]
    if wrong:
        yield "Cannot be true together", _lines(wrong[:NUM_WRONG], "!", more=len(wrong) - NUM_WRONG)
    beliefs = [check.text for check in reading.checks if check.name == "belief"]
    if beliefs:
        yield "Said, and not so", _lines(beliefs, "!")
    for name, title in _BY_NAME.items():
        if found := [check.text for check in reading.checks if check.name == name]:
            yield title, _lines(found, "-")
    sums = [check.text for check in reading.checks if check.holds and check.name not in _BY_NAME]
    if sums:
        yield "The arithmetic", _lines(sums[:NUM_CHECKS], "-", more=len(sums) - NUM_CHECKS)
    if reading.fits:
        yield "Tensors of exactly the size asked for", _lines([_fit(fit) for fit in reading.fits], "-")
    if len(reading.messages) > 1 or reading.num_more_messages:
        yield "Messages", _messages(reading)
    if reading.cannot_tell:
        yield "What the text cannot tell", _lines(list(reading.cannot_tell), "-")
    if reading.run_next:
        yield "Run next, without a GPU", Text(reading.run_next, style="bold")


def causes_table(causes: tuple[Cause, ...]) -> Table:
    """One row a cause, its evidence under it."""
    table = columns("<", "<", indent=0)
    for number, cause in enumerate(causes[:NUM_CAUSES], start=1):
        words, style = _CONFIDENCE[cause.confidence]
        table.add_row(Text(f"{number}. {words}", style=style, no_wrap=True), Text(f"{cause.title}."))
        for line in cause.evidence:
            table.add_row("", Text(line, style="dim", overflow="fold"))
        if number > 1:
            table.add_row("", Text(f"Then: {cause.try_first}", style="dim"))
    return table


def _lines(lines: list[str], bullet: str, more: int = 0) -> Table:
    table = columns("<", "<", indent=0)
    for line in lines:
        table.add_row(bullet, Text(line, overflow="fold"))
    if more > 0:
        table.add_row("", Text(f"{more} more in the JSON", style="dim"))
    return table


def _fit(fit: Fit) -> str:
    return f"{fit.what} {list(fit.shape)} x {fit.element_bytes} B = {format_bytes(fit.bytes)}"


def _messages(reading: Reading) -> Table:
    """One row a message, in the order of the log."""
    table = columns(">", "<", "<", "<", indent=0)
    for message in reading.messages[:NUM_MESSAGES]:
        table.add_row(f"line {message.line}", _rank(message), message.dialect, Text(_size(message)))
    hidden = len(reading.messages) - NUM_MESSAGES
    if hidden > 0 or reading.num_more_messages:
        table.add_row("", "", f"{max(hidden, 0) + reading.num_more_messages} more", "", style="dim")
    return table


def ranks_table(ends: tuple[RankEnd, ...]) -> Table:
    """One row a rank, with how it ended."""
    table = columns(">", "<", indent=0)
    for end in ends[:NUM_RANKS]:
        table.add_row(f"rank {end.rank}", Text(end.happened))
    if len(ends) > NUM_RANKS:
        table.add_row("", Text(f"{len(ends) - NUM_RANKS} more in the JSON", style="dim"))
    return table


def _rank(message: OomMessage) -> str:
    return "" if message.rank is None else f"rank {message.rank}"


def _size(message: OomMessage) -> str:
    """What was asked for, or what the message says."""
    if message.requested_bytes is None:
        return message.text[:60]
    free = f", {format_bytes(message.free_bytes)} free" if message.free_bytes is not None else ""
    return f"asked for {format_bytes(message.requested_bytes)}{free}"


def _footer(reading: Reading) -> str:
    rank = "" if reading.first_failing_rank is None else f" - first failing rank: {reading.first_failing_rank}"
    return f"{', '.join(reading.sources)}: {reading.num_lines} line{'' if reading.num_lines == 1 else 's'}{rank}"
