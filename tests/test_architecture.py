"""The direction of imports, read from the source."""

import ast
import subprocess
import sys
from pathlib import Path

import pytest

import peaksight

PACKAGE = Path(peaksight.__file__).parent

# What each part may import of peaksight, beside itself; `cli` and `library` are on top.
FOUNDATION = {"errors", "extras", "units", "records"}
BELOW = {
    "ending": set(),
    "errors": set(),
    "extras": {"errors"},
    "units": set(),
    "records": {"errors", "units"},
    "settings": {"errors"},
    "gpus": FOUNDATION,
    "allocator": FOUNDATION,
    "overlays": FOUNDATION | {"gpus", "allocator"},
    "reporting": {"records", "units"},
}
BELOW["virtual_gpu"] = BELOW["live"] = BELOW["postmortem"] = BELOW["jax"] = BELOW["overlays"] | {"overlays"}
BELOW["virtual_gpu"] |= {"ending"}
BELOW["attribution"] = FOUNDATION | {"gpus", "allocator"}
BELOW["diagnosis"] = BELOW["attribution"] | {"attribution"}
BELOW["planning"] = BELOW["diagnosis"] | {"diagnosis"}
BELOW["verification"] = BELOW["planning"] | {"overlays", "jax"}
BELOW["pytest_plugin"] = {"limited_tests"}
BELOW["limited_tests"] = FOUNDATION | {"library", "reporting", "pytest_plugin", "settings"}
BELOW["library"] = FOUNDATION | {"live", "overlays", "reporting"}
BELOW["notebooks"] = FOUNDATION | {"library", "reporting"}
BELOW["cli"] = set(BELOW)
# What programs call, which is on top like `library`.
BELOW["jax/__init__.py"] = BELOW["planning"] | {"jax", "verification"}
BELOW["__main__"] = {"cli"}
BELOW["__init__"] = {"library", "notebooks"}

# Where torch may be imported when the module itself is.
MAY_IMPORT_TORCH = {"virtual_gpu", "overlays", "live", "verification", "jax"}


def modules():
    return sorted(PACKAGE.rglob("*.py"))


def part_of(path):
    """The folder or file directly under the package that `path` belongs to; an entry point is a part of its own."""
    if (name := path.relative_to(PACKAGE).as_posix()) in BELOW:
        return name
    return path.relative_to(PACKAGE).with_suffix("").parts[0]


def imports_of(path, *, lazy):
    """Dotted names that `path` imports: at its top level, and with `lazy` inside functions too."""
    tree = ast.parse(path.read_text(encoding="utf-8"))
    nodes = ast.walk(tree) if lazy else tree.body
    for node in nodes:
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            assert node.level == 0, f"{path}: imports are absolute"
            yield node.module
            yield from (f"{node.module}.{alias.name}" for alias in node.names if node.module == "peaksight")


@pytest.mark.parametrize("path", modules(), ids=lambda path: str(path.relative_to(PACKAGE)))
def test_imports_go_down(path):
    """A part imports itself and what lies below it, also inside functions."""
    part = part_of(path)
    names = {name.split(".")[1] for name in imports_of(path, lazy=True) if name.startswith("peaksight.")}

    assert names - {"__version__"} - {part} <= BELOW[part]


@pytest.mark.parametrize("path", modules(), ids=lambda path: str(path.relative_to(PACKAGE)))
def test_torch_is_imported_only_where_it_runs(path):
    """`peaksight --help` must not wait for torch."""
    roots = {name.split(".")[0] for name in imports_of(path, lazy=False)}

    assert part_of(path) in MAY_IMPORT_TORCH or not roots & {"torch", "jax"}


def test_importing_the_package_imports_neither_torch_nor_jax():
    """Nor does importing the command line."""
    code = "import sys, peaksight, peaksight.cli; print(sorted({'torch', 'jax'} & set(sys.modules)))"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)

    assert done.stdout.strip() == "[]"
