"""Lines of the user's code that speak of freezing."""

import ast
import re
from collections.abc import Iterable
from pathlib import Path

from peaksight.records.jax_program import FreezeMention

_WORD = re.compile(r"freez|frozen|set_to_zero|trainable_filter|partition_params", re.IGNORECASE)


# Calls that freeze objects of Python, and no parameters.
_OF_PYTHON = {"dataclass", "frozenset", "FrozenSet", "FrozenDict", "FrozenConfigDict", "freeze_support"}
_LOOKED_AT = ast.Call | ast.Assign


def freeze_mentions(files: Iterable[str]) -> tuple[FreezeMention, ...]:
    """Statements of `files` that call, assign or pass something with a name of freezing."""
    found = []
    for file in sorted(set(files)):
        try:
            text = Path(file).read_text(encoding="utf-8")
            tree = ast.parse(text)
        except (OSError, SyntaxError, ValueError):
            continue
        lines = text.splitlines()
        numbers = sorted(
            {node.lineno for node in ast.walk(tree) if isinstance(node, _LOOKED_AT) and _speaks_of_it(node)}
        )
        found += [FreezeMention(at=f"{Path(file).name}:{number}", text=lines[number - 1].strip()) for number in numbers]
    return tuple(found)


def _speaks_of_it(node: ast.Call | ast.Assign) -> bool:
    if isinstance(node, ast.Call):
        name = node.func.attr if isinstance(node.func, ast.Attribute) else getattr(node.func, "id", "")
        if name in _OF_PYTHON:
            return False
        return bool(_WORD.search(name)) or any(_WORD.search(each.arg or "") for each in node.keywords)
    names = [getattr(target, "id", getattr(target, "attr", "")) for target in node.targets]
    return any(_WORD.search(name) for name in names)
