"""`peaksight.peak()`: what a function of a notebook, or a line of it, would need on a card."""

import ast
import inspect
import os
import sys
import textwrap
from collections.abc import Callable
from types import FunctionType
from typing import Any

from peaksight.errors import UsageError
from peaksight.notebooks.cells import NEEDED, Chosen, choose
from peaksight.notebooks.history import executed_cells, notes_on
from peaksight.notebooks.prediction import Prediction
from peaksight.notebooks.simulation import INSIDE, options_of, simulate_code

CALLS = 3


def peak(what: Callable[[], Any] | str, *, calls: int = CALLS, cells: str = NEEDED, **options: str | int) -> Prediction:
    """Simulate `what` on a virtual GPU and return its predicted peak; a notebook shows it as a table.

    Nothing runs in this process, and no object of it is used: what `what` needs is made again, in a process of its own,
    from the cells that define it (in a notebook), or by importing its module.

    Args:
        what: A function without arguments that trains or makes one step (`train_step`), or code as text
            (`"train_step(model, batch)"`).
        calls: How often a function or an expression runs: an optimizer has its state from the second step on. The run
            ends earlier once two steps peak alike.
        cells: Which cells of the notebook run before it: `needed`, `all`, `none`, or numbers as in `1,3`.
        options: Those of `peaksight run`, with underscores: `gpu="t4"`, `memory="12GiB"`, `steps=0` for inference.

    Raises:
        UsageError: `what` is nothing that can be called again elsewhere.
        ScriptError: the code failed where it was simulated.
    """
    if os.environ.get(INSIDE):
        raise UsageError(
            "peaksight.peak() is called by the code that it simulates: call it where that code does not come to, as "
            'below `if __name__ == "__main__":`.',
            slug="peak-inside",
        )
    code, in_notebook = (what, True) if isinstance(what, str) else _call_of(what)
    chosen = choose(executed_cells(line=_line_in_cell()), code, cells) if in_notebook else Chosen()
    return simulate_code(_repeated(code, calls), chosen.before, options_of(options), notes_on(chosen))


def _line_in_cell() -> int:
    """The line of the cell that calls `peak()`; 0 where a function does."""
    caller = sys._getframe(2)
    return caller.f_lineno if caller.f_code.co_name == "<module>" else 0


def _call_of(function: Callable[[], Any]) -> tuple[str, bool]:
    """Code that calls `function`, and whether it stands in a cell."""
    if not isinstance(function, FunctionType):
        raise _cannot(f"{type(function).__name__} is no function")
    if function.__name__ == "<lambda>":
        return _body_of(function), True
    if "." in function.__qualname__:
        raise _cannot(f"{function.__qualname__} stands in a function or a class")
    if _takes_arguments(function):
        raise _cannot(f"{function.__name__} takes arguments")
    if function.__module__ != "__main__":
        return f"import {function.__module__}\n{function.__module__}.{function.__name__}()", False
    if os.path.isfile(file := function.__code__.co_filename) and not executed_cells():
        return f"import runpy\nrunpy.run_path({file!r}, run_name='__peak__')[{function.__name__!r}]()", False
    return f"{function.__name__}()", True


def _takes_arguments(function: FunctionType) -> bool:
    given = inspect.signature(function).parameters.values()
    return any(
        each.default is each.empty and each.kind not in (each.VAR_POSITIONAL, each.VAR_KEYWORD) for each in given
    )


def _body_of(function: FunctionType) -> str:
    """The expression of a lambda, by the lines that it is written in."""
    try:
        tree = ast.parse(textwrap.dedent(inspect.getsource(function)))
    except (OSError, SyntaxError) as error:
        raise _cannot("the text of a lambda cannot be found") from error
    found = [node for node in ast.walk(tree) if isinstance(node, ast.Lambda)]
    if len(found) != 1 or _takes_arguments(function):
        raise _cannot("there are several lambdas on that line, or it takes arguments")
    return ast.unparse(found[0].body)


def _repeated(code: str, calls: int) -> str:
    """The last expression of `code`, `calls` times; statements run once."""
    *before, last = ast.parse(code).body
    if calls == 1 or not isinstance(last, ast.Expr):
        return code
    lines = [ast.unparse(each) for each in before]
    return "\n".join([*lines, f"for _call in range({calls}):", textwrap.indent(ast.unparse(last), "    ")])


def _cannot(why: str) -> UsageError:
    return UsageError(
        f"Can't call that in another process: {why}. Give a function without arguments that a cell or a module "
        'defines, or the code as text: peaksight.peak("train_step(model, batch)").',
        slug="peak-what",
    )
