"""The post-mortems of examples/systems, which `peaksight fix --report` wrote: they say what is predicted today."""

import json
from pathlib import Path

import pytest

from peaksight.units import format_bytes

ROOT = Path(__file__).parents[2]
SYSTEMS = ROOT / "benchmarks" / "systems"
PREDICTED = json.loads((SYSTEMS / "predicted.json").read_text())
INCIDENTS = sorted((ROOT / "examples" / "systems").glob("*/incident.md"))
# What the post-mortem is of, where it is not the system as its authors had it.
OF_THE_NOTE = {"llm_translator"}


@pytest.mark.parametrize("incident", INCIDENTS, ids=lambda path: path.parent.name)
def test_the_readme_leads_to_it(incident):
    """And says how it was made."""
    assert "[incident.md](incident.md)" in (incident.parent / "README.md").read_text()


@pytest.mark.parametrize("system", PREDICTED)
def test_the_problem_is_the_predicted_one(system):
    """GIVEN the peak of a run in docs/systems.md, THEN the post-mortem that `fix` wrote of it has the same."""
    peak = PREDICTED[system]["note" if system in OF_THE_NOTE else "before"]["peak"]
    needs = f"needs {format_bytes(peak['reserved_bytes'])} reserved ({format_bytes(peak['allocated_bytes'])} allocated)"

    assert needs in (ROOT / "examples" / "systems" / system / "incident.md").read_text()


def test_jax_fails_as_predicted():
    """GIVEN the run on the card of the note, THEN what `run` wrote has the same peak and asks for the same in vain."""
    limited = json.loads((SYSTEMS / "predicted_jax.json").read_text())["before"]["limited"]
    text = (ROOT / "examples" / "systems" / "pi0_dex" / "incident.md").read_text()

    assert f"needs {format_bytes(limited['allocated_bytes'])} (predicted)" in text
    assert f"asking for {format_bytes(limited['oom']['requested_bytes'])}." in text
