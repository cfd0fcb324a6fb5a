"""The page of `peaksight compare`: by how much two peaks differ, where that comes from, and the peaks of commits."""

from collections.abc import Iterator, Sequence

from rich.console import Console, Group, RenderableType
from rich.padding import Padding
from rich.table import Table
from rich.text import Text

from peaksight.records import CommitHistory, ComparedRun, Comparison
from peaksight.reporting.bars import glyphs_for
from peaksight.reporting.comparison_sentences import (
    commit_notes,
    happened,
    matching,
    moved,
    origin,
    over_commits,
    run_lines,
    short,
)
from peaksight.reporting.differences import (
    BY_MODULE,
    CAUSES,
    DifferenceRow,
    DifferenceTable,
    cause_rows,
    peak_rows,
    phase_rows,
    tables,
)
from peaksight.reporting.tables import columns
from peaksight.reporting.terminal import shorten
from peaksight.reporting.wrapping import MAX_WIDTH, print_sentence
from peaksight.units import format_bytes, format_difference

# What three sizes take, with the space between all columns.
_SIZE_COLUMNS = 42


def render_comparison(comparison: Comparison, console: Console) -> None:
    """Print `comparison` on `console`; the difference comes first."""
    width, dot = min(console.width, MAX_WIDTH), glyphs_for(console.encoding).dot
    for sentence in filter(None, (happened(comparison), moved(comparison))):
        print_sentence(console, sentence, "bold")
    for title, body in _sections(comparison, width):
        console.print()
        console.print(Text(title, style="bold"))
        console.print(body, width=width)
    console.print()
    console.print(Text(f" {dot} ".join(origin(comparison)), style="dim"), width=width)


def render_commits(history: CommitHistory, console: Console) -> None:
    """Print the peaks of the commits in `history`, oldest first."""
    print_sentence(console, over_commits(history), "bold")
    console.print()
    print_sentence(console, " ".join(history.argv), "dim")
    table = columns("<", ">", ">", ">", "<", header=("commit", "allocated", "reserved", "change", ""))
    parent = None
    for commit in history.commits:
        sizes = [_size(commit.allocated_bytes), _size(commit.reserved_bytes)]
        notes = [Text(note, style="dim") for note in commit_notes(commit, parent)]
        what = Group(Text(commit.subject), *notes)
        table.add_row(short(commit.commit), *sizes, _change(commit.allocated_difference_bytes), what)
        parent = commit.commit
    console.print(table, width=min(console.width, MAX_WIDTH))


def _sections(comparison: Comparison, width: int) -> Iterator[tuple[str, RenderableType]]:
    """Titles and bodies; a section without content is left out."""
    yield "Runs", _runs(comparison.a, comparison.b)
    yield "Predicted peaks", _differences(peak_rows(comparison))
    if comparison.by_phase:
        yield "Most allocated in each phase", _differences(phase_rows(comparison))
    if comparison.causes:
        yield CAUSES, _differences(cause_rows(comparison))
    for table in tables(comparison):
        if table.rows or table.others:
            yield table.title, _whole(table, width)
    if sentence := matching(comparison):
        yield "Lines of A and B", Padding(Text(sentence), (0, 0, 0, 1))


def _runs(a: ComparedRun, b: ComparedRun) -> Table:
    table = columns("<", "<")
    for name, run in (("A", a), ("B", b)):
        for position, line in enumerate(run_lines(run)):
            table.add_row(*(("", Text(line, style="dim")) if position else (name, Text(line))))
    return table


def _whole(table: DifferenceTable, width: int) -> Table:
    """One of the tables that add up; of a long module path its end is shown."""
    names = [Text(row.name or f"({table.nowhere})", overflow="fold") for row in table.rows]
    if table.title == BY_MODULE:
        names = [shorten(name.plain, width - _SIZE_COLUMNS) for name in names]
    found = _differences(table.rows, names)
    if table.others:
        found.add_row(*_cells(table.others), table.others.name, style="dim")
    found.add_row(*_cells(table.total), table.total.name, style="bold")
    return found


def _differences(rows: Sequence[DifferenceRow], names: Sequence[Text] | None = None) -> Table:
    table = columns(">", ">", ">", "<", "<", header=("A", "B", "B - A", "", ""))
    for row, name in zip(rows, names or [Text(row.name) for row in rows], strict=True):
        table.add_row(*_cells(row), name, Text(row.note, style="dim", no_wrap=True, overflow="ellipsis"))
    return table


def _cells(row: DifferenceRow) -> tuple[str, str, Text]:
    return _size(row.a_bytes), _size(row.b_bytes), _change(row.difference_bytes)


def _size(num_bytes: int | None) -> str:
    return "" if num_bytes is None else format_bytes(num_bytes)


def _change(num_bytes: int | None) -> Text:
    """What grows is red, what shrinks green."""
    if num_bytes is None:
        return Text("")
    return Text(format_difference(num_bytes), style="red" if num_bytes > 0 else "green" if num_bytes else "")
