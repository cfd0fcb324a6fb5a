"""Which call in the script makes the DataLoader of its training batches."""

import ast
from collections.abc import Iterator
from pathlib import Path

from peaksight.planning.loops import loading_of
from peaksight.planning.script_text import iterated_name, text_of_script
from peaksight.planning.situation import Situation


def lines_of_loader(situation: Situation) -> list[int]:
    """The line of that call in the script's file, none where several may be meant.

    It is the only one; or what the training loop goes through was assigned it; or what it is in, or assigned to, is
    called after the training.
    """
    text = text_of_script(situation)
    tree = text.trees.get(Path(situation.command.target).name)
    calls = list(_calls(tree)) if tree else []
    loading = loading_of(situation)
    loop = text.loop_at(loading.at) if loading else None
    looped = iterated_name(loop.iter) if loop else ""
    of_loop = [line for name, line in calls if looped and name == looped]
    of_training = [line for name, line in calls if "train" in name.lower()]
    choices = ([line for _, line in calls], of_loop, of_training)
    return next((lines for lines in choices if len(lines) == 1), [])


def _calls(tree: ast.AST, name: str = "") -> Iterator[tuple[str, int]]:
    """Each call of a DataLoader, with the name that it is assigned to, or else of the function around it."""
    for node in ast.iter_child_nodes(tree):
        match node:
            case ast.FunctionDef(name=inner):
                yield from _calls(node, inner)
            case ast.Assign(targets=[target]):
                yield from _calls(node, ast.unparse(target))
            case ast.Call(func=function, lineno=line) if ast.unparse(function).rpartition(".")[2] == "DataLoader":
                yield name, line
            case _:
                yield from _calls(node, name)
