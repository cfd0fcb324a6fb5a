"""`peaksight run` on scripts under JAX."""

import json
import subprocess
import sys
from pathlib import Path

import pytest

pytest.importorskip("jax")
pytest.importorskip("optax")

TRAIN = Path(__file__).with_name("train.py")
WIDTH = 1024


def run(*words, json_file=None):
    options = ["--gpu", "t4", *(["--json", str(json_file), "--force"] if json_file else [])]
    command = [sys.executable, "-m", "peaksight", "run", *options, *map(str, words)]
    return subprocess.run(command, capture_output=True, text=True, check=False)


@pytest.fixture(scope="module")
def done(tmp_path_factory):
    """One run, and its report."""
    file = tmp_path_factory.mktemp("jax") / "report.json"
    done = run(TRAIN, WIDTH, json_file=file)
    return done, json.loads(file.read_text())


def test_the_script_runs_to_its_end(done):
    """Losses are stand-ins, and the step counter is right."""
    process, report = done

    assert process.returncode == 0, process.stderr
    assert "loss 1.000 at step 3" in process.stdout
    assert "evaluation 1.0" in process.stdout
    assert report["fits"] is True
    assert "jax-values" in {unknown["slug"] for unknown in report["not_simulated"]}


def test_what_is_alive_adds_up(done):
    """The state has its categories, and its bytes."""
    _, report = done
    held = {}
    for row in report["live_at_peak"]:
        held[row["category"]] = held.get(row["category"], 0) + row["bytes"]
    parameters = 2 * 4 * WIDTH * WIDTH * 4

    assert sum(held.values()) == report["peak"]["allocated_bytes"]
    assert held["parameter"] == parameters
    assert 2 * parameters <= held["optimizer_state"] < 2.01 * parameters
    assert len(report["steps"]) == 3


def test_every_jitted_function_is_named(done):
    """Each with its calls and the phase of its first."""
    _, report = done

    assert [(each["name"], each["num_calls"], each["phase"]) for each in report["programs"]] == [
        ("init", 1, "init"),
        ("train_step", 3, "forward"),
        ("evaluate", 1, "evaluation"),
    ]


def test_a_script_that_fails_has_its_own_traceback():
    """Without our frames, and with its code."""
    process = run(TRAIN, "256", "--fail")

    assert process.returncode == 2
    assert "ValueError: as asked" in process.stderr
    assert "peaksight/jax" not in process.stderr


def test_what_the_pool_does_not_have(tmp_path):
    """A larger model does not fit the pool of a T4, and the report says what it asked for."""
    file = tmp_path / "report.json"
    process = run(TRAIN, "12288", json_file=file)
    report = json.loads(file.read_text())

    assert process.returncode == 1, process.stderr
    assert report["fits"] is False
    assert report["oom"]["message"].startswith("RESOURCE_EXHAUSTED")
    assert report["peak"]["allocated_bytes"] > report["gpu"]["usable_bytes"]
