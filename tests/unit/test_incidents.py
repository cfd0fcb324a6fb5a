"""The post-mortems of examples/systems, which `peaksight fix --report` wrote: they say what is predicted today."""

import json
from pathlib import Path

import pytest

from peaksight.units import format_bytes

ROOT = Path(__file__).parents[2]
PREDICTED = json.loads((ROOT / "benchmarks" / "systems" / "predicted.json").read_text())
INCIDENTS = sorted((ROOT / "examples" / "systems").glob("*/incident.md"))


@pytest.mark.parametrize("incident", INCIDENTS, ids=lambda path: path.parent.name)
def test_the_problem_is_the_predicted_one(incident):
    """GIVEN the peak of `before` in docs/systems.md, THEN the post-mortem has the same, and the README links to it."""
    peak = PREDICTED[incident.parent.name]["before"]["peak"]
    needs = f"needs {format_bytes(peak['reserved_bytes'])} reserved ({format_bytes(peak['allocated_bytes'])} allocated)"

    assert needs in incident.read_text()
    assert "(incident.md)" in (incident.parent / "README.md").read_text()


def test_there_are_some():
    """Of the systems whose plans are searched within minutes."""
    assert {"dcal_vit", "eeg_bimamba"} <= {incident.parent.name for incident in INCIDENTS}
