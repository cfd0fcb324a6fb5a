"""Compares printed text with files that a person has read."""

import difflib
from pathlib import Path

import pytest

TESTS = Path(__file__).parent


def compare_golden(text, name, golden=TESTS / "golden", actual=TESTS / "actual"):
    """Fail with the difference when `text` is not the golden file `name`; what was printed is kept in `actual`."""
    expected = (golden / name).read_text(encoding="utf-8") if (golden / name).exists() else ""
    if text == expected:
        return
    actual.mkdir(exist_ok=True)
    (actual / name).write_text(text, encoding="utf-8")
    lines = difflib.unified_diff(
        expected.splitlines(), text.splitlines(), f"golden/{name}", f"actual/{name}", lineterm=""
    )
    pytest.fail("\n".join(lines), pytrace=False)
