"""Compiling a file of the person's so that it notes which of its blocks are reached, and is the same otherwise.

A probe is one store into a byte array that is a constant of the code: it calls nothing, names nothing, raises nothing
and has the line of the statement behind it. It stands at the beginning of a block and behind every statement from
which the run may not return. Only code that may train, or that freezes, has probes: what libraries compile, pickle or
hash, such as a function for `Dataset.map`, stays as it is.
"""

import ast
import re
from collections.abc import Iterator
from types import CodeType

from peaksight.virtual_gpu.evidence.patterns import frozen_value

_Function = ast.FunctionDef | ast.AsyncFunctionDef
_BLOCKS = ("body", "orelse", "finalbody")
_DEFINITIONS = (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef)
_MAY_NOT_RETURN = (ast.Call, ast.Await, ast.Yield, ast.YieldFrom)
_WORDS_OF_TRAINING = set("step train training trainer fit backward epoch epochs learn main run loop optimize".split())
_NO_HOOKS = {"__init__", "__len__", "__getitem__", "__iter__", "__next__", "forward", "backward"}
_HITS = "the hits of peaksight's probes"


class Hits(bytearray):
    """One byte a probe, 1 once it was reached; a constant of code has to have a hash."""

    __hash__ = object.__hash__  # type: ignore[assignment]

    def __eq__(self, other: object) -> bool:
        """Only itself is the same."""
        return self is other


class Probe(ast.Assign):
    """`hits[index] = 1`, put in front of a statement."""

    index: int


def compile_with_probes(source: bytes, filename: str) -> tuple[CodeType, ast.Module, Hits]:
    """The code of `source`, its tree with the probes in it, and their hits.

    Raises:
        SyntaxError, ValueError: as `compile` does, also where the probes are not understood.
    """
    tree = ast.parse(source, filename)
    hits = Hits(_Prober(tree).add())
    code = compile(tree, filename, "exec", dont_inherit=True)
    return _with_hits(code, hits), tree, hits


def blocks_of(statement: ast.stmt) -> Iterator[list[ast.stmt]]:
    """The blocks that run as part of `statement`: none of a definition, and no handler of exceptions."""
    if isinstance(statement, _DEFINITIONS):
        return
    yield from (block for name in _BLOCKS if (block := getattr(statement, name, [])))
    if isinstance(statement, ast.Match):
        yield from (case.body for case in statement.cases)


def own_expressions(statement: ast.stmt) -> Iterator[ast.AST]:
    """All nodes of the expressions of `statement` itself, not of its blocks: of a loop what it iterates over."""
    if isinstance(statement, _DEFINITIONS):
        return
    for child in ast.iter_child_nodes(statement):
        if isinstance(child, (ast.expr, ast.withitem)):
            yield from ast.walk(child)


def called_names(node: ast.AST) -> set[str]:
    """The names of what is called below `node`: the last part of `a.b.c(...)`."""
    functions = (call.func for call in ast.walk(node) if isinstance(call, ast.Call))
    return {name for function in functions if (name := getattr(function, "attr", None) or getattr(function, "id", ""))}


class _Prober:
    def __init__(self, tree: ast.Module) -> None:
        self._tree = tree
        self._training = _training_functions(tree)
        self._num_probes = 0

    def add(self) -> int:
        """Put the probes in; returns how many."""
        self._probe(self._tree.body)
        return self._num_probes

    def _probe(self, block: list[ast.stmt]) -> None:
        probed: list[ast.stmt] = []
        before: ast.stmt | None = None
        for statement in block:
            if not _has_to_be_first(statement, probed):
                if before is None or _may_not_return(before):
                    probed.append(self._probe_at(statement))
                before = statement
            probed.append(statement)
            self._go_into(statement)
        block[:] = probed

    def _go_into(self, statement: ast.stmt) -> None:
        if isinstance(statement, _Function):
            if statement.name in self._training:
                self._probe(statement.body)
        elif isinstance(statement, ast.ClassDef):
            for member in statement.body:
                self._go_into(member)
                if statement.bases and isinstance(member, _Function) and member.name not in _NO_HOOKS:
                    self._probe_entry(member.body)
        else:
            for block in blocks_of(statement):
                self._probe(block)
            for handler in getattr(statement, "handlers", ()):
                self._probe(handler.body)

    def _probe_entry(self, block: list[ast.stmt]) -> None:
        """A method that a library may call has a probe in any case."""
        place = 1 if _has_to_be_first(block[0], []) else 0
        if place < len(block) and not isinstance(block[place], Probe):
            block.insert(place, self._probe_at(block[place]))

    def _probe_at(self, statement: ast.stmt) -> Probe:
        target = ast.Subscript(value=ast.Constant(_HITS), slice=ast.Constant(self._num_probes), ctx=ast.Store())
        probe = Probe(targets=[target], value=ast.Constant(1))
        probe.index = self._num_probes
        self._num_probes += 1
        for node in ast.walk(probe):
            ast.copy_location(node, statement)
        return probe


def _has_to_be_first(statement: ast.stmt, before: list[ast.stmt]) -> bool:
    """A docstring, or an import from the future."""
    if isinstance(statement, ast.ImportFrom):
        return statement.module == "__future__"
    is_text = isinstance(statement, ast.Expr) and isinstance(statement.value, ast.Constant)
    return is_text and not before


def _may_not_return(statement: ast.stmt) -> bool:
    if isinstance(statement, _DEFINITIONS):
        return False
    leaves = any(isinstance(node, _MAY_NOT_RETURN) for node in ast.walk(statement))
    return leaves or any(True for _ in blocks_of(statement))


def _training_functions(tree: ast.Module) -> set[str]:
    """The names of the functions that may train: by their own names, or by those of what they call in turn."""
    calls = {node.name: called_names(node) for node in ast.walk(tree) if isinstance(node, _Function)}
    found = {name for name, called in calls.items() if any(map(speaks_of_training, {name} | called))}
    found |= {node.name for node in ast.walk(tree) if isinstance(node, _Function) and _freezes(node)}
    while more := {name for name, called in calls.items() if name not in found and called & found}:
        found |= more
    return found


def _freezes(node: ast.AST) -> bool:
    return any(frozen_value(each) is not None for each in ast.walk(node))


def speaks_of_training(name: str) -> bool:
    """Whether a function of that name may train."""
    spaced = re.sub(r"(?<=[a-z])(?=[A-Z])", "_", name)
    return not _WORDS_OF_TRAINING.isdisjoint(spaced.lower().split("_"))


def _with_hits(code: CodeType, hits: Hits) -> CodeType:
    constants = (hits if constant == _HITS else constant for constant in code.co_consts)
    return code.replace(
        co_consts=tuple(_with_hits(item, hits) if isinstance(item, CodeType) else item for item in constants)
    )
