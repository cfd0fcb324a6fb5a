"""The cells that ran in this session of IPython."""

import ast
import sys
from collections.abc import Iterable, Iterator
from math import inf
from typing import Any

from peaksight.notebooks.cells import Cell, Chosen
from peaksight.notebooks.names import Names


def executed_cells(shell: Any = None, line: int = 0) -> list[Cell]:
    """Those of `shell` (default: the running one) that ran so far, in their order; none where there is none.

    Of the one that runs now, the last, the statements above `line`. Cells that failed are left out where IPython tells,
    as are magics, and calls of `peaksight.peak()`.
    """
    shell = shell or running_shell()
    if shell is None:
        return []
    failed = set(getattr(shell.history_manager, "exceptions", {}))
    *texts, now = shell.history_manager.input_hist_parsed
    plain = [*map(_plain, texts), _plain(now, line)]
    return [Cell(number=at, text=text) for at, text in enumerate(plain) if text and at not in failed]


def running_shell() -> Any:
    """The shell of IPython in this process, None where there is none; IPython is not imported to find out."""
    if "IPython" not in sys.modules:
        return None
    from IPython import get_ipython

    return get_ipython()


def notes_on(chosen: Chosen) -> tuple[str, ...]:
    """What a person has to know of the cells that were `chosen`."""
    return tuple(_notes(chosen))


def _notes(chosen: Chosen) -> Iterator[str]:
    if chosen.left_out:
        cells = ", ".join(f"In[{number}]" for number in chosen.left_out)
        yield f"Not run before it, though they use what it uses: {cells} (cells='all' or numbers run them)."
    if chosen.unknown:
        yield f"No cell that ran defines {', '.join(chosen.unknown)}."


def _plain(text: str, before: float = inf) -> str:
    """The statements of `text` that end before that line, others than magics and what uses a prediction."""
    try:
        body = ast.parse(text).body
    except SyntaxError:
        return ""
    lines = text.splitlines()
    kept = [each for each in _kept(body) if (each.end_lineno or inf) < before]
    numbers = {at for each in kept for at in range(_begin(each), (each.end_lineno or 0) + 1)}
    return "\n".join(line if at in numbers else "" for at, line in enumerate(lines, start=1)).strip("\n")


def _kept(body: Iterable[ast.stmt]) -> Iterator[ast.stmt]:
    """Those of `body` that are no magics, and use nothing that one has defined."""
    gone: set[str] = set()
    for statement in body:
        names = Names.of(ast.unparse(statement))
        if _is_magic(statement) or names.used & gone:
            gone |= names.defined
        else:
            yield statement


def _begin(statement: ast.stmt) -> int:
    """Its first line, with its decorators."""
    decorators: list[ast.expr] = getattr(statement, "decorator_list", [])
    return min([statement.lineno, *(each.lineno for each in decorators)])


def _is_magic(statement: ast.stmt) -> bool:
    """A call of IPython, which magics are made of, or of `peaksight.peak()`, which a simulation does not call."""
    called = [ast.unparse(node.func) for node in ast.walk(statement) if isinstance(node, ast.Call)]
    return isinstance(statement, ast.Expr | ast.Assign) and any(
        name.startswith("get_ipython()") or name in ("peaksight.peak", "peak") for name in called
    )
