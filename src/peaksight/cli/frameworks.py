"""Tells from its imports whether a script trains under JAX."""

import ast
import os
import sysconfig
from collections.abc import Iterable, Iterator
from pathlib import Path

from peaksight.records import ScriptCommand
from peaksight.virtual_gpu.script.program import find_program, search_directory

# What a script under JAX may use of torch: it loads data with it.
_DATA_OF_TORCH = ("torch.utils", "torch.utils.data")
_MAX_FILES = 200


def trains_under_jax(command: ScriptCommand) -> bool:
    """Whether the script, or a module beside it or on PYTHONPATH that it imports, imports jax, and none uses torch.

    torch for loading data alone does not count. A script that cannot be found or parsed is not under JAX: the run says
    what is wrong with it.
    """
    names = set(_imports(command))
    of_torch = {name for name in names if _root(name) == "torch" and not _loads_data(name)}
    return any(_root(name) in ("jax", "flax", "equinox") for name in names) and not of_torch


def _root(name: str) -> str:
    return name.partition(".")[0]


def _loads_data(name: str) -> bool:
    """Whether the module, or the name in it, is of torch's loading of data."""
    return name in _DATA_OF_TORCH or name.startswith(f"{_DATA_OF_TORCH[-1]}.")


def _imports(command: ScriptCommand) -> Iterator[str]:
    """The dotted names imported by the script and by the person's modules, anywhere in them."""
    folders = [Path(search_directory(command)), *_on_path()]
    waiting = _first_file(command)
    seen: set[Path] = set()
    while waiting and len(seen) < _MAX_FILES:
        path = waiting.pop()
        if path in seen:
            continue
        seen.add(path)
        for node in _nodes_of(path):
            for name in _imported_by(node):
                yield name
                waiting += _files_of(folders, name) if _root(name) != "peaksight" else []
            waiting += _run_by(node)


def _first_file(command: ScriptCommand) -> list[Path]:
    try:
        return [Path(find_program(command).file)]
    except Exception:
        return []


def _on_path() -> list[Path]:
    """The folders of PYTHONPATH that are none of installed packages, or of Python."""
    libraries = {os.path.realpath(place) for place in sysconfig.get_paths().values()}
    entries = os.environ.get("PYTHONPATH", "").split(os.pathsep)
    return [Path(entry) for entry in entries if entry and os.path.realpath(entry) not in libraries]


def _nodes_of(path: Path) -> Iterator[ast.AST]:
    try:
        yield from ast.walk(ast.parse(path.read_bytes()))
    except (OSError, SyntaxError, ValueError):
        return


def _imported_by(node: ast.AST) -> Iterator[str]:
    if isinstance(node, ast.Import):
        yield from (alias.name for alias in node.names)
    elif isinstance(node, ast.ImportFrom) and node.module and not node.level:
        yield node.module
        yield from (f"{node.module}.{alias.name}" for alias in node.names)


def _run_by(node: ast.AST) -> list[Path]:
    """The file of `runpy.run_path("train.py")`."""
    if isinstance(node, ast.Call) and ast.unparse(node.func).endswith("run_path") and node.args:
        given = node.args[0]
        if isinstance(given, ast.Constant) and isinstance(given.value, str):
            return [Path(given.value)]
    return []


def _files_of(folders: Iterable[Path], name: str) -> list[Path]:
    """The files of module `name` in the first of `folders` that has it."""
    for folder in folders:
        place = folder.joinpath(*name.split("."))
        if found := [path for path in (place.with_suffix(".py"), place / "__init__.py") if path.is_file()]:
            return found
    return []
