"""Every message has its paragraph."""

import ast
import re
from pathlib import Path

import peaksight

PACKAGE = Path(peaksight.__file__).parent
MESSAGES = Path(__file__).parents[1] / "docs" / "messages.md"


def slugs_in_source():
    """Every constant given as `slug=`, and the keys of the tables of approximations."""
    for path in PACKAGE.rglob("*.py"):
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            if isinstance(node, ast.Call) and not _makes_a_fix(node):
                yield from (each.value.value for each in node.keywords if _is_slug(each))
    for path in (PACKAGE / "virtual_gpu" / "approximations.py", PACKAGE / "jax" / "notes.py"):
        table = ast.parse(path.read_text(encoding="utf-8"))
        assigned = (node for node in table.body if isinstance(node, ast.Assign))
        texts = next(
            node for node in assigned if isinstance(node.targets[0], ast.Name) and node.targets[0].id == "TEXTS"
        )
        yield from ast.literal_eval(texts.value)


def _makes_a_fix(call):
    """Those have a page of their own, docs/fixes.md, which is made of them."""
    return ast.unparse(call.func) == "FixKind"


def _is_slug(keyword):
    return keyword.arg == "slug" and isinstance(keyword.value, ast.Constant)


def test_every_slug_has_a_paragraph_and_every_paragraph_a_slug():
    """docs/messages.md and the source name the same slugs."""
    documented = re.findall(r"^### (.+)$", MESSAGES.read_text(encoding="utf-8"), flags=re.MULTILINE)

    assert sorted(set(slugs_in_source())) == sorted(documented)
