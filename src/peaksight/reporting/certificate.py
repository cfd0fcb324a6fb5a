"""The certificate in a terminal: the verdict first, then what decided it, the blocks, and what was not exercised."""

from collections.abc import Iterator

from rich.console import Console, RenderableType
from rich.padding import Padding
from rich.table import Table
from rich.text import Text

from peaksight.records.certificate import BlockDifference, Certificate, Mechanism, Worst
from peaksight.reporting.wrapping import MAX_WIDTH, print_sentence

NUM_BLOCKS = 8

_VERDICTS = {
    "bitwise": ("Bitwise the same", "bold green"),
    "rounding": ("The same up to rounding", "bold green"),
    "noise": ("Same objective, other noise", "bold yellow"),
    "different": ("Different training: refused", "bold red"),
}


def render_certificate(certificate: Certificate, console: Console) -> None:
    """Print `certificate` on `console`; the verdict comes first."""
    print_sentence(console, verdict_words(certificate), _VERDICTS[certificate.verdict][1])
    for title, body in _sections(certificate):
        console.print()
        console.print(Text(title, style="bold"))
        console.print(body, width=min(console.width, MAX_WIDTH))
    console.print()
    print_sentence(console, _footer(certificate), "dim")


def verdict_words(certificate: Certificate) -> str:
    """The verdict in one sentence, with the worst tensor."""
    return _VERDICTS[certificate.verdict][0] + _worst_words(certificate)


def _worst_words(certificate: Certificate) -> str:
    noise = f" ({certificate.noise})" if certificate.noise else ""
    if certificate.worst is None:
        return f"{noise}."
    return f"{noise}; worst: {_worst(certificate.worst)}."


def _worst(worst: Worst) -> str:
    where = f"the {worst.kind} of {worst.name} in block {worst.block}, step {worst.step}"
    return f"{where}, {relative(worst.relative)}"


def relative(value: float | None) -> str:
    """A relative difference as a person reads it."""
    return "not finite" if value is None else f"{value:.1e} of its norm" if value else "none"


def _sections(certificate: Certificate) -> Iterator[tuple[str, RenderableType]]:
    yield "Why", _lines(certificate.reasons + certificate.notes)
    yield "Compared", _compared(certificate)
    yield "Gradients by block", _blocks(certificate)
    if any(not each.same for each in certificate.invariants):
        yield "Not the same", _invariants(certificate)
    yield "Exercised", _mechanisms(certificate, exercised=True)
    yield "Not exercised, and so not judged", _mechanisms(certificate, exercised=False)


def _compared(certificate: Certificate) -> Table:
    table = _table(2)
    for name, words in compared(certificate):
        table.add_row(name, words)
    return table


def compared(certificate: Certificate) -> Iterator[tuple[str, str]]:
    """What was compared, and how closely: names and words."""
    ranks = f" of {certificate.ranks} ranks" if certificate.ranks > 1 else ""
    yield "optimizer steps", f"{certificate.steps}{ranks}"
    yield "weights", certificate.weights
    yield "batches", certificate.batches
    if loss := certificate.loss:
        yield "loss", f"{loss.original} and {loss.changed} in step {loss.step}"
    yield "original, repeated", relative(certificate.noise_floor)
    yield "float64", certificate.reference
    smallest = certificate.smallest_caught
    yield "smallest error caught", "none" if smallest is None else f"{smallest:.1e} of a block's gradient"


def blocks_by_size(certificate: Certificate) -> list[BlockDifference]:
    """The blocks, that with the largest difference first."""
    return sorted(certificate.blocks, key=_size, reverse=True)


def _blocks(certificate: Certificate) -> Table:
    table = _table(3, header=("block", "difference", "smallest error caught"))
    rows = blocks_by_size(certificate)
    for block in rows[:NUM_BLOCKS]:
        caught = "none" if block.smallest_caught is None else f"{block.smallest_caught:.1e}"
        table.add_row(block.block, relative(block.relative), caught)
    if others := rows[NUM_BLOCKS:]:
        table.add_row(f"{len(others)} others", f"up to {relative(others[0].relative)}", "", style="dim")
    return table


def _size(block: BlockDifference) -> float:
    return float("inf") if block.relative is None else block.relative


def _invariants(certificate: Certificate) -> Table:
    table = _table(4, header=("", "step", "original", "changed"))
    for each in certificate.invariants:
        if not each.same:
            table.add_row(each.name, str(each.step or ""), each.original, each.changed)
    return table


def _mechanisms(certificate: Certificate, *, exercised: bool) -> RenderableType:
    return Padding(Text(", ".join(mechanism_words(certificate, exercised=exercised))), (0, 0, 0, 1))


def mechanism_words(certificate: Certificate, *, exercised: bool) -> list[str]:
    """The mechanisms that were exercised, or were not; `nothing` where there are none."""
    return [_mechanism(each) for each in certificate.mechanisms if each.exercised is exercised] or ["nothing"]


def _mechanism(mechanism: Mechanism) -> str:
    if mechanism.original == mechanism.changed:
        return mechanism.name
    return f"{mechanism.name} (in the {'original' if mechanism.original else 'changed run'} only)"


def _footer(certificate: Certificate) -> str:
    return f"torch {certificate.torch} on {certificate.device}, {certificate.seconds} s"


def _lines(sentences: tuple[str, ...]) -> Table:
    table = _table(1)
    for sentence in sentences:
        table.add_row(Text(sentence, overflow="fold"))
    return table


def _table(columns: int, header: tuple[str, ...] | None = None) -> Table:
    table = Table(box=None, show_header=header is not None, header_style="dim", padding=(0, 1))
    for title in header or ("",) * columns:
        table.add_column(title, overflow="fold")
    return table
