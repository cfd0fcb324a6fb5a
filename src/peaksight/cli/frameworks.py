"""Tells from its imports whether a script trains under JAX."""

import ast
from collections.abc import Iterator
from pathlib import Path

from peaksight.records import ScriptCommand
from peaksight.virtual_gpu.script.program import find_program, search_directory

# What a script under JAX may use of torch: it loads data with it.
_DATA_OF_TORCH = ("torch.utils", "torch.utils.data")
_MAX_FILES = 200


def trains_under_jax(command: ScriptCommand) -> bool:
    """Whether the script, or a module beside it that it imports, imports jax, and none of them trains with torch.

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
    """The dotted names imported by the script and by the modules beside it, anywhere in them."""
    folder = Path(search_directory(command))
    waiting = _first_file(command)
    seen: set[Path] = set()
    while waiting and len(seen) < _MAX_FILES:
        path = waiting.pop()
        if path in seen:
            continue
        seen.add(path)
        for name in _imports_of(path):
            yield name
            waiting += _beside(folder, name)


def _first_file(command: ScriptCommand) -> list[Path]:
    try:
        return [Path(find_program(command).file)]
    except Exception:
        return []


def _imports_of(path: Path) -> Iterator[str]:
    try:
        tree = ast.parse(path.read_bytes())
    except (OSError, SyntaxError, ValueError):
        return
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom) and node.module and not node.level:
            yield node.module
            yield from (f"{node.module}.{alias.name}" for alias in node.names)


def _beside(folder: Path, name: str) -> list[Path]:
    """The files of module `name` below `folder`, if it is there."""
    place = folder.joinpath(*name.split("."))
    return [path for path in (place.with_suffix(".py"), place / "__init__.py") if path.is_file()]
