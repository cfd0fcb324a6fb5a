"""`peaksight gpus`."""

import json

import pytest
from click.testing import CliRunner

import helpers_commands
from peaksight.cli import peaksight
from peaksight.gpus import find_card, known_cards, known_slices


def lines_of(*options):
    return CliRunner().invoke(peaksight, ["gpus", *options], env={"COLUMNS": "80"}).output.splitlines()


@pytest.mark.parametrize(("options", "cards"), [((), known_cards()), (("--mig",), known_slices())])
def test_the_table_names_every_card(options, cards):
    """By the name that --gpu takes, in 80 columns."""
    lines = lines_of(*options)

    assert [line.split()[0] for line in lines[1:] if line[1] != " "] == [card.name for card in cards]
    assert all(len(line) <= 80 for line in lines)


def test_a_row_shows_what_a_process_can_use():
    """The total, what is left of it beside the context, multiprocessors and compute capability."""
    row = next(line for line in lines_of() if line.split()[0] == "h100-80gb")

    assert row.split()[-6:] == ["79.18", "GiB", "78.67", "GiB", "132", "9.0"]


def test_a_name_of_the_table_is_never_cut():
    """It is there to be copied."""
    assert all(find_card(line.split()[0]) for line in lines_of("--mig")[1:] if line[1] != " ")


def test_the_json_holds_every_fact_of_cards_and_slices():
    """With where each total comes from, and what is computed of it."""
    facts = json.loads("\n".join(lines_of("--json")))
    t4 = next(card for card in facts if card["name"] == "t4")

    assert [card["name"] for card in facts] == [card.name for card in known_cards() + known_slices()]
    assert facts[0]["source"].startswith("Measured")
    assert (t4["capability"], t4["threads_per_multi_processor"]) == ([7, 5], 1024)
    assert t4["usable_bytes"] == t4["total_bytes"] - t4["context_bytes"]


@pytest.mark.torch
def test_a_build_that_does_not_run_on_the_card_is_warned_of(tmp_path):
    """One line on stderr; the numbers come all the same."""
    (tmp_path / "train.py").write_text("import torch; torch.ones(1, device='cuda')")
    options = ("--gpu", "v100-16gb", "--steps", "0", "--torch", "2.14+cu130")
    done = helpers_commands.peaksight("run", *options, "train.py", cwd=tmp_path)

    assert done.stderr.count("pass --torch 2.14+cu126") == 1
