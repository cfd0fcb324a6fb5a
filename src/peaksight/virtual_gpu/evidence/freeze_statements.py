"""Where the person's files freeze parameters, and whether that was come to."""

import ast
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace

from peaksight.records import FreezeFact
from peaksight.virtual_gpu.evidence.freezing import Freezing, Frozen
from peaksight.virtual_gpu.evidence.patterns import bound_names, frozen_value, is_named_in
from peaksight.virtual_gpu.unreached.probed_files import ProbedFile, ProbedFiles
from peaksight.virtual_gpu.unreached.probes import Probe, blocks_of, called_names, speaks_of_training

_DEFINITIONS = (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef)
_LOOPS = (ast.For, ast.AsyncFor)


@dataclass(frozen=True, slots=True)
class _Place:
    """Where a block is: in a loop that binds `names`, behind the filter `condition`.

    `reached` tells that the statement or the filter around it was come to. Right behind a filter (`is_filtered`) a
    probe that was not reached says that nothing matched; elsewhere that the script has switched the freeze off.
    """

    reached: bool = True
    is_filtered: bool = False
    names: frozenset[str] = frozenset()
    condition: str = ""


def freeze_facts(files: ProbedFiles, freezing: Freezing) -> tuple[FreezeFact, ...]:
    """One fact for each statement that freezes before the training, and for each line that has a library do so."""
    facts = [fact for file in files for fact in _facts(file, freezing.done_by)]
    told = {fact.at for fact in facts}
    facts += [_fact(line, did) for line, did in freezing.by_line.items() if line and line not in told]
    return tuple(facts)


def _facts(file: ProbedFile, done_by: Callable[[str], Frozen]) -> Iterator[FreezeFact]:
    bodies = [file.tree.body, *(function.body for function in file.functions.values())]
    found = [each for body in bodies for each in _freezes(body, file, _Place())]
    for node, place in sorted(found, key=lambda each: each[0].lineno):
        at = f"{file.name}:{node.lineno}"
        did = done_by(at)
        if not did.others:
            fact = _fact(at, did)
            yield replace(fact, text=ast.unparse(node), condition=place.condition, reached=place.reached)


def _fact(at: str, did: Frozen) -> FreezeFact:
    return FreezeFact(
        at=at,
        text="",
        condition="",
        reached=True,
        num_parameters=did.num_parameters,
        frozen_bytes=did.frozen_bytes,
        frozen_matrices=did.frozen_matrices,
        thawed_bytes=did.thawed_bytes,
        thawed_at=did.thawed_at,
    )


def _freezes(block: list[ast.stmt], file: ProbedFile, place: _Place) -> Iterator[tuple[ast.stmt, _Place]]:
    """The simple statements in `block` that freeze; functions are looked at on their own."""
    for statement in block:
        if isinstance(statement, Probe):
            place = replace(place, reached=place.reached and (place.is_filtered or bool(file.hits[statement.index])))
        elif inner := list(blocks_of(statement)):
            for each in inner:
                yield from _freezes(each, file, _inside(statement, each, place))
            if _may_skip(statement) and not _is_filter(statement, place.names):
                place = replace(place, is_filtered=False)
        elif not isinstance(statement, _DEFINITIONS) and _is_freeze(statement, place.names):
            yield statement, place


def _inside(statement: ast.stmt, block: list[ast.stmt], place: _Place) -> _Place:
    """The place of `block`, which is one of those of `statement`."""
    if isinstance(statement, _LOOPS) and not any(map(speaks_of_training, called_names(statement))):
        return replace(place, is_filtered=True, names=place.names | bound_names(statement))
    if isinstance(statement, ast.If) and _is_filter(statement, place.names):
        condition = f"if {ast.unparse(statement.test)}"
        if block is not statement.body:
            condition = f"else of {condition}"
        return replace(place, is_filtered=True, condition=condition)
    return replace(place, is_filtered=False)


def _is_filter(statement: ast.stmt, names: frozenset[str]) -> bool:
    return isinstance(statement, ast.If) and is_named_in(names, statement.test)


def _may_skip(statement: ast.stmt) -> bool:
    return isinstance(statement, ast.If) and any(isinstance(each, ast.Continue) for each in statement.body)


def _is_freeze(statement: ast.stmt, names: frozenset[str]) -> bool:
    """Whether it sets False, or what depends on the parameter: not a flag that a function is given."""
    values = list(filter(None, map(frozen_value, ast.walk(statement))))
    names |= bound_names(statement)
    return any(isinstance(value, ast.Constant) or is_named_in(names, value) for value in values)
