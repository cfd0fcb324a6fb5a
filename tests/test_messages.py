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
            if isinstance(node, ast.keyword) and node.arg == "slug" and isinstance(node.value, ast.Constant):
                yield node.value.value
    for path in (PACKAGE / "virtual_gpu" / "approximations.py", PACKAGE / "jax" / "notes.py"):
        table = ast.parse(path.read_text(encoding="utf-8"))
        assigned = (node for node in table.body if isinstance(node, ast.Assign))
        texts = next(
            node for node in assigned if isinstance(node.targets[0], ast.Name) and node.targets[0].id == "TEXTS"
        )
        yield from ast.literal_eval(texts.value)


def test_every_slug_has_a_paragraph_and_every_paragraph_a_slug():
    """docs/messages.md and the source name the same slugs."""
    documented = re.findall(r"^### (.+)$", MESSAGES.read_text(encoding="utf-8"), flags=re.MULTILINE)

    assert sorted(set(slugs_in_source())) == sorted(documented)
