"""Which cells of a notebook have to run before a piece of code, by the names that it uses."""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass

from peaksight.errors import UsageError
from peaksight.notebooks.names import Names

NEEDED, ALL, NONE = "needed", "all", "none"


@dataclass(frozen=True, slots=True, kw_only=True)
class Cell:
    """The text of the cell `In[number]`, as plain Python."""

    number: int
    text: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Chosen:
    """The cells that run before a piece of code, in their order.

    `left_out` use what `before` defines, and may have changed it; `unknown` are names that no cell defines.
    """

    before: tuple[Cell, ...] = ()
    left_out: tuple[int, ...] = ()
    unknown: tuple[str, ...] = ()


def choose(cells: Sequence[Cell], code: str, which: str = NEEDED) -> Chosen:
    """Of the `cells` that ran so far those that `which` asks for: `needed`, `all`, `none`, or numbers as in `1,3`.

    Needed are the last one that defines a name which `code` uses, what that one uses, and so on.

    Raises:
        UsageError: `which` is nothing of the kind.
    """
    if which == NEEDED:
        return _needed(cells, code)
    before = tuple(cells) if which == ALL else () if which == NONE else tuple(_numbered(cells, which))
    names = [Names.of(cell.text) for cell in before]
    defined = {name for each in names for name in each.defined}
    has_star = any(each.has_star for each in names)
    return Chosen(before=before, unknown=() if has_star else tuple(sorted(Names.of(code).used - defined)))


def _needed(cells: Sequence[Cell], code: str) -> Chosen:
    names = [Names.of(cell.text) for cell in cells]
    end, unknown = len(cells), set[str]()
    waiting = [(name, end) for name in Names.of(code).used]
    taken = {at for at, each in enumerate(names) if each.has_star}
    waiting += [need for at in taken for need in _needs(names, at)]
    while waiting:
        name, before = waiting.pop()
        at = next((at for at in reversed(range(before)) if name in names[at].defined), None)
        if at is None:
            unknown.add(name)
        elif at not in taken:
            taken.add(at)
            waiting += _needs(names, at)
    made = {name for at in taken for name in names[at].made}
    touching = [at for at in range(min(taken, default=end), end) if at not in taken and names[at].used & made]
    has_star = any(names[at].has_star for at in taken)
    return Chosen(
        before=tuple(cells[at] for at in sorted(taken)),
        left_out=tuple(cells[at].number for at in touching),
        unknown=() if has_star else tuple(sorted(unknown)),
    )


def _needs(names: Sequence[Names], at: int) -> list[tuple[str, int]]:
    """Each name that the cell `at` uses, and the cell before which it is defined: of what functions use, any."""
    each = names[at]
    return [(name, at) for name in each.used_at_once] + [(name, len(names)) for name in each.used - each.used_at_once]


def _numbered(cells: Iterable[Cell], which: str) -> Iterator[Cell]:
    words = [word.strip() for word in which.split(",")]
    known = {str(cell.number): cell for cell in cells}
    if not all(word in known for word in words):
        raise UsageError(
            f"There are no cells {which!r} in this session. Write {NEEDED}, {ALL} or {NONE}, or numbers of cells that "
            "ran, as in 1,3.",
            slug="cells",
        )
    yield from (known[word] for word in words)
