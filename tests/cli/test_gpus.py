"""`peaksight gpus`."""

import json

from click.testing import CliRunner

from peaksight.cli import peaksight
from peaksight.gpus import known_cards


def test_the_table_names_every_card():
    """By the name that --gpu takes, in 80 columns."""
    lines = CliRunner().invoke(peaksight, ["gpus"], env={"COLUMNS": "80"}).output.splitlines()

    assert [line.split()[0] for line in lines[1:] if line[1] != " "] == [card.name for card in known_cards()]
    assert all(len(line) <= 80 for line in lines)


def test_the_json_holds_every_fact():
    """With where each total comes from."""
    first = json.loads(CliRunner().invoke(peaksight, ["gpus", "--json"]).output)[0]

    assert first["name"] == "h100-80gb"
    assert first["source"].startswith("Measured")
