"""What the person's files say: the names that they use, how they loop, and what they call backward on."""

import ast
import re
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property, lru_cache
from pathlib import Path

from peaksight.planning.situation import Situation

Loop = ast.For | ast.AsyncFor
# What goes through all of its first argument.
_GO_THROUGH = {"enumerate", "tqdm", "track"}


@dataclass(frozen=True)
class ScriptText:
    """The syntax trees of the person's files that were run, by the file's name as in sources (`train.py`)."""

    trees: dict[str, ast.Module]

    @cached_property
    def _nodes(self) -> tuple[ast.AST, ...]:
        return tuple(node for tree in self.trees.values() for node in ast.walk(tree))

    @cached_property
    def _words(self) -> frozenset[str]:
        return frozenset(
            word.lower() for tree in self.trees.values() for node in ast.walk(tree) for word in _words(node)
        )

    def names(self, pattern: re.Pattern[str]) -> bool:
        """Whether any name, attribute, argument or imported name has `pattern` in it, in lower case."""
        return any(pattern.search(word) for word in self._words)

    def imports(self, *modules: str) -> bool:
        """Whether one of `modules`, or something in it, is imported."""
        return any(name.split(".")[0] in modules for node in self._nodes for name in _imported(node))

    def calls(self, name: str) -> bool:
        """Whether a function or method called `name` is called."""
        return any(isinstance(node, ast.Call) and _name(node.func) == name for node in self._nodes)

    def assigns(self, attribute: str) -> bool:
        """Whether anything's `attribute` is assigned to."""
        return any(
            isinstance(node, ast.Attribute) and node.attr == attribute and isinstance(node.ctx, ast.Store)
            for node in self._nodes
        )

    @property
    def sums_its_loss(self) -> bool:
        """Whether a loss function sums, or backward is called on what a `sum()` was assigned to."""
        nodes = self._nodes
        called = {ast.unparse(n.func.value) for n in nodes if _is_call_of(n, "backward")}  # type: ignore[attr-defined]
        assigned = (node for node in nodes if isinstance(node, ast.Assign))
        return any(isinstance(n, ast.keyword) and _sums(n) for n in nodes) or any(
            _is_call_of(node.value, "sum") and ast.unparse(node.targets[0]) in called for node in assigned
        )

    def loop_at(self, source: str) -> Loop | None:
        """The `for` whose first line is `source` (`train.py:40`)."""
        name, _, line = source.rpartition(":")
        tree = self.trees.get(name)
        nodes = ast.walk(tree) if tree else iter(())
        return next((n for n in nodes if isinstance(n, Loop) and str(n.lineno) == line), None)


def ends_early(loop: Loop) -> bool:
    """Whether `loop` may be left before what it goes through is at its end, or counts along to something else."""
    if any(isinstance(node, ast.Break | ast.Return) for each in loop.body for node in ast.walk(each)):
        return True
    return not _reads_all(loop.iter)


def iterated_name(iterable: ast.expr) -> str:
    """The variable that a loop goes through, maybe by `enumerate` and its like; empty for something else."""
    inner = _gone_through(iterable)
    return ast.unparse(inner) if isinstance(inner, ast.Name | ast.Attribute) else ""


def _reads_all(iterable: ast.expr) -> bool:
    """Whether it goes through a variable, or a DataLoader that is made there, to its end."""
    return _gone_through(iterable) is not None


def _gone_through(iterable: ast.expr) -> ast.expr | None:
    """What is gone through to its end, None where something unknown is called."""
    while isinstance(iterable, ast.Call) and _name(iterable.func) != "DataLoader":
        if _name(iterable.func) not in _GO_THROUGH or not iterable.args:
            return None
        iterable = iterable.args[0]
    return iterable


@lru_cache(maxsize=8)
def _parsed(path: Path) -> ast.Module | None:
    try:
        return ast.parse(path.read_bytes())
    except (OSError, SyntaxError, ValueError):
        return None


def text_of_script(situation: Situation) -> ScriptText:
    """Of the script, and of the files beside it with a line that used the card."""
    script = Path(situation.command.target)
    files = {a.source.rpartition(":")[0] for a in situation.capture.allocations} - {""}
    trees = {name: _parsed(script.parent / name) for name in sorted(files | {script.name})}
    return ScriptText({name: tree for name, tree in trees.items() if tree is not None})


def _words(node: ast.AST) -> Iterator[str]:
    match node:
        case ast.Name(id=name) | ast.Attribute(attr=name) | ast.alias(name=name) | ast.arg(arg=name):
            yield name
        case ast.keyword(arg=str(name)):
            yield name


def _imported(node: ast.AST) -> Iterator[str]:
    match node:
        case ast.Import(names=names):
            yield from (alias.name for alias in names)
        case ast.ImportFrom(module=str(module)):
            yield module


def _is_call_of(node: ast.AST, method: str) -> bool:
    return isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute) and node.func.attr == method


def _sums(keyword: ast.keyword) -> bool:
    return keyword.arg == "reduction" and isinstance(keyword.value, ast.Constant) and keyword.value.value == "sum"


def _name(function: ast.expr) -> str:
    return function.attr if isinstance(function, ast.Attribute) else ast.unparse(function)
