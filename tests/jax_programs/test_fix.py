"""`peaksight fix` on scripts under JAX."""

import json
import subprocess
import sys
from pathlib import Path

import pytest

pytest.importorskip("jax")
pytest.importorskip("optax")

TRAIN = Path(__file__).with_name("train_scanned.py")


def peaksight(*words):
    command = [sys.executable, "-m", "peaksight", *map(str, words)]
    return subprocess.run(command, capture_output=True, text=True, check=False)


@pytest.fixture(scope="module")
def found(tmp_path_factory):
    """The search on a card on which neither more of it nor donation is enough, and its files."""
    folder = tmp_path_factory.mktemp("fix")
    files = ("--apply", folder / "plan.json", "--json", folder / "fix.json", "--html", folder / "fix.html")
    done = peaksight("fix", "--gpu", "t4", "--memory", "300MiB", "--candidates", "2", *files, TRAIN, "--old")
    assert done.returncode == 0, done.stderr
    return done, json.loads((folder / "fix.json").read_text()), folder


def test_a_policy_is_the_plan(found):
    """The one that computes least again, with what a person writes and where."""
    done, report, _ = found
    best = report["best"]

    assert "loss" not in done.stdout
    assert ["jax-remat-policy"] == best["candidate"]["kinds"]
    assert {"policy": "dots_saveable"} == best["candidate"]["changes"][0]["parameters"]
    assert best["outcome"]["reserved_bytes"] <= report["limit_bytes"] < report["original"]["outcome"]["reserved_bytes"]
    assert best["outcome"]["operations"] == report["original"]["outcome"]["operations"] > 0
    assert report["written"][0]["at"].startswith("train_scanned.py:")
    assert "% operations" in done.stdout and "% time" not in done.stdout
    assert report["original"]["outcome"]["tier"] in done.stdout.replace("\n", " ")


def test_donation_of_what_is_read_again_is_no_plan(found):
    """The script reads the state of the step before, and fails as it would on the card."""
    (donation,) = [each for each in found[1]["tried"] if each["candidate"]["kinds"] == ["jax-donate"]]

    assert not donation["fits"]
    assert "deleted" in donation["verdict"]


def test_several_cards_stand_beside_the_plans(found):
    """The first number of cards that is enough is the last that was simulated."""
    rows = found[1]["on_more_cards"]

    assert ["batch over 2 cards", "batch and state over 2 cards"] == [each["candidate"]["title"] for each in rows[:2]]
    assert [False] * (len(rows) - 1) + [True] == [each["fits"] for each in rows]
    assert rows[1]["outcome"]["reserved_bytes"] < 0.6 * found[1]["original"]["outcome"]["reserved_bytes"]


def test_the_plan_is_simulated_again(found):
    """`run --plan` finds what the search found; a real run under it is refused."""
    _, report, folder = found
    done = peaksight(
        "run", "--gpu", "t4", "--memory", "300MiB", "--plan", folder / "plan.json", "--json", "-", TRAIN, "--old"
    )

    assert done.returncode == 0, done.stderr
    assert report["best"]["outcome"]["reserved_bytes"] == json.loads(done.stdout)["peak"]["reserved_bytes"]
    refused = peaksight("--plan", folder / "plan.json", TRAIN)
    assert refused.returncode == 2
    assert "simulated only" in refused.stderr


def test_no_plan_fits():
    """The exit code, and what came nearest."""
    done = peaksight("fix", "--gpu", "t4", "--memory", "325MiB", "--candidates", "1", "--class", "bitwise", TRAIN)

    assert done.returncode == 1, done.stderr
    assert "No plan fits" in done.stdout
