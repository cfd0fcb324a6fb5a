"""Statements of one file: found by line or by what they keep under a name, and put in other words."""

import ast
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property, lru_cache
from pathlib import Path

from peaksight.planning.situation import Situation
from peaksight.records.source_edit import SourceEdit

Scope = ast.FunctionDef | ast.AsyncFunctionDef | ast.Module
Loop = ast.For | ast.AsyncFor | ast.While
_SCOPES = (ast.FunctionDef, ast.AsyncFunctionDef, ast.Lambda, ast.ClassDef)
_COMPOUND = (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef, ast.For, ast.AsyncFor, ast.While, ast.If, ast.With,
             ast.AsyncWith, ast.Try, ast.TryStar, ast.Match)  # fmt: skip
_BLOCKS = ("body", "orelse", "finalbody")


@dataclass(frozen=True)
class Statements:
    """Those of `file`, as sources name it, with its `source`."""

    file: str
    source: str

    @cached_property
    def tree(self) -> ast.Module:
        """The syntax tree."""
        return ast.parse(self.source)

    @cached_property
    def _lines(self) -> list[str]:
        return self.source.split("\n")

    @cached_property
    def _parents(self) -> dict[ast.AST, ast.AST]:
        return {child: node for node in ast.walk(self.tree) for child in ast.iter_child_nodes(node)}

    def at(self, line: int) -> ast.stmt | None:
        """The simple statement that is at `line`, None where there is none that has its lines for itself."""
        found = [node for node in self.simple() if node.lineno <= line <= (node.end_lineno or node.lineno)]
        return found[0] if len(found) == 1 and self.is_alone(found[0]) else None

    def simple(self, scope: ast.AST | None = None) -> Iterator[ast.stmt]:
        """The simple statements of `scope`, or of the file, in the order of their lines."""
        nodes = ast.walk(scope or self.tree)
        found = (node for node in nodes if isinstance(node, ast.stmt) and not isinstance(node, _COMPOUND))
        return iter(sorted(found, key=lambda node: node.lineno))

    def is_alone(self, statement: ast.stmt) -> bool:
        """Whether nothing but a comment is beside it on its lines."""
        before = self._row(statement.lineno)[: statement.col_offset].strip()
        after = self._row(statement.end_lineno or 0)[statement.end_col_offset or 0 :].strip()
        return not before and (not after or after.startswith(b"#"))

    def scopes(self, where: str) -> list[Scope]:
        """The functions that `where` (`train.py:main`) may be; the file itself for `train.py:<module>`."""
        name = where.rpartition(":")[2]
        if name == "<module>":
            return [self.tree]
        functions = (ast.FunctionDef, ast.AsyncFunctionDef)
        return [node for node in ast.walk(self.tree) if isinstance(node, functions) and node.name == name]

    def block_of(self, statement: ast.stmt) -> list[ast.stmt]:
        """The statements among which it is."""
        parent = self._parents[statement]
        blocks: list[list[ast.stmt]] = [getattr(parent, name, []) for name in _BLOCKS]
        blocks += [case.body for case in getattr(parent, "cases", [])]
        return next(block for block in blocks if isinstance(block, list) and statement in block)

    def above(self, node: ast.AST) -> Iterator[ast.AST]:
        """What `node` is in, the innermost first."""
        while node in self._parents:
            node = self._parents[node]
            yield node

    def scope_of(self, node: ast.AST) -> Scope:
        """The innermost function that `node` is in, or the file."""
        kinds = (ast.FunctionDef, ast.AsyncFunctionDef, ast.Module)
        return next(each for each in self.above(node) if isinstance(each, kinds))

    def loop_of(self, statement: ast.AST) -> Loop | None:
        """The innermost loop of the same function that `statement` is in."""
        for each in self.above(statement):
            if isinstance(each, (ast.For, ast.AsyncFor, ast.While)):
                return each
            if isinstance(each, _SCOPES):
                return None
        return None

    def text_of(self, node: ast.expr | ast.stmt) -> str:
        """As it is written."""
        return ast.get_source_segment(self.source, node) or ""

    # In other words.

    def wrapped(self, statement: ast.stmt, before: str = "", after: str = "") -> SourceEdit:
        """`statement` with `before` and `after` around it, on its own lines."""
        end = (statement.end_lineno or 0, statement.end_col_offset or 0)
        return self._spliced(statement, [((statement.lineno, statement.col_offset), before), (end, after)])

    def called_on(self, statement: ast.stmt, value: ast.expr, call: str) -> SourceEdit:
        """`statement` with `call` (`.detach()`) on its expression `value`."""
        binds = not isinstance(value, (ast.Name, ast.Attribute, ast.Call, ast.Subscript)) and not self._is_in_parens(
            value
        )
        begin, end = (value.lineno, value.col_offset), (value.end_lineno or 0, value.end_col_offset or 0)
        if self._is_in_parens(value):
            end = (end[0], self._row(end[0]).index(b")", end[1]) + 1)
        return self._spliced(statement, [(begin, "(" * binds), (end, ")" * binds + call)])

    def replaced(self, statement: ast.stmt, parts: Sequence[tuple[ast.expr | ast.stmt, str]]) -> SourceEdit:
        """`statement` with other words for `parts` of it, each on one line."""
        text, offset = self._block(statement), statement.lineno
        for part, words in sorted(parts, key=lambda each: (each[0].lineno, each[0].col_offset), reverse=True):
            row = text[part.lineno - offset]
            text[part.lineno - offset] = row[: part.col_offset] + words.encode() + row[part.end_col_offset :]
        return self._edit(statement, text)

    def _spliced(self, statement: ast.stmt, inserts: Sequence[tuple[tuple[int, int], str]]) -> SourceEdit:
        text = self._block(statement)
        for (line, column), words in sorted(inserts, key=lambda each: each[0], reverse=True):
            row = text[line - statement.lineno]
            text[line - statement.lineno] = row[:column] + words.encode() + row[column:]
        return self._edit(statement, text)

    def _edit(self, statement: ast.stmt, text: list[bytes]) -> SourceEdit:
        return SourceEdit(
            file=self.file,
            line=statement.lineno,
            text=b"\n".join(self._block(statement)).decode(),
            replacement=b"\n".join(text).decode(),
        )

    def _block(self, statement: ast.stmt) -> list[bytes]:
        return [self._row(line) for line in range(statement.lineno, (statement.end_lineno or 0) + 1)]

    def _row(self, line: int) -> bytes:
        """A line as columns of the tree count it."""
        return self._lines[line - 1].rstrip("\r").encode()

    def _is_in_parens(self, value: ast.expr) -> bool:
        """Whether it is written in parentheses of its own, directly around it."""
        before = self._row(value.lineno)[: value.col_offset].rstrip()
        after = self._row(value.end_lineno or 0)[value.end_col_offset or 0 :].lstrip()
        parent = self._parents.get(value)
        is_argument = isinstance(parent, ast.Call) and value in parent.args
        return before.endswith(b"(") and after.startswith(b")") and not is_argument


@lru_cache(maxsize=8)
def _read(path: Path, file: str) -> Statements | None:
    try:
        found = Statements(file, path.read_bytes().decode())
        found.tree  # noqa: B018  # whether it can be parsed
    except (OSError, SyntaxError, ValueError):
        return None
    return found


def statements_of(situation: Situation, file: str) -> Statements | None:
    """Those of `file` as sources name it; None for what is no file of Python in UTF-8, and for modules (`-m`)."""
    if situation.command.is_module or not file:
        return None
    return _read(Path(situation.command.target).parent / file, file)


def file_and_line(at: str) -> tuple[str, int]:
    """Of `train.py:40`; of what names no line the line 0."""
    file, _, line = at.rpartition(":")
    return file, int(line) if line.isdecimal() else 0


def names_in(node: ast.AST) -> set[str]:
    """All variables that `node` mentions."""
    return {each.id for each in ast.walk(node) if isinstance(each, ast.Name)}
