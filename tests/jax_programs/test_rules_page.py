"""docs/jax-rules.md: what rules on programs of JAX say of their fix, against the fix itself."""

import pytest

pytest.importorskip("jax")
pytest.importorskip("optax")

from benchmarks.jax.rules import EXAMPLES, FIXES, PAGE, by_liveness, by_xla
from peaksight.diagnosis.catalog import jax_rules
from peaksight.planning.catalog import JAX_FIXES
from peaksight.units import format_bytes


def rows():
    """The cells of the table by rule."""
    lines = [line for line in PAGE.read_text().splitlines() if line.startswith("| `jax-")]
    cells = [[cell.strip().strip("`") for cell in line.strip("|").split("|")] for line in lines]
    return {rule: rest for rule, *rest in cells}


def test_every_rule_is_on_the_page():
    """In the table or, for a reason, below it; with a fix that there is."""
    page = PAGE.read_text()

    assert set(rows()) == set(EXAMPLES) == set(FIXES)
    assert all(f"`{rule}`" in page for rule in jax_rules())
    kinds = {fix.slug for fix in JAX_FIXES}
    assert all(words.split("`")[1] in kinds for words in FIXES.values() if "`" in words)


@pytest.mark.parametrize("rule", EXAMPLES)
def test_what_liveness_says(rule):
    """As the page has it; each rule finds its example."""
    peak_bytes, saved = by_liveness(rule)

    assert [format_bytes(peak_bytes), "-" if saved is None else format_bytes(saved)] == rows()[rule][0:4:2]


@pytest.mark.parametrize("rule", ["jax-state-not-donated", "jax-scan-residuals"])
def test_what_xla_says(rule):
    """As the page has it, with the release that it was made with."""
    import jax

    if f"(jaxlib {jax.lib.__version__}," not in PAGE.read_text():
        pytest.skip("another release of jaxlib")
    assert [format_bytes(each) for each in by_xla(rule)] == rows()[rule][1:4:2]
