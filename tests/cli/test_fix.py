"""`peaksight fix` as a person types it, and the plan that it writes."""

import json
import subprocess
from importlib.util import find_spec
from pathlib import Path

import pytest

from helpers_commands import peaksight
from schemas import validated

pytestmark = pytest.mark.torch

SCRIPT = Path(__file__).parents[1] / "scripts" / "plans" / "blocks.py"


@pytest.fixture(scope="module")
def found(tmp_path_factory):
    """A folder with the script and its plan for a card that is 60 MiB too small, and the answer."""
    folder = tmp_path_factory.mktemp("fix")
    (folder / "train.py").write_text(SCRIPT.read_text())
    words = ["--gpu", "t4", "--memory", "900MiB", "--candidates", "12", "--apply", "plan.json", "--json", "fix.json"]
    done = peaksight("fix", *words, "train.py", cwd=folder)
    assert done.returncode == 0, done.stderr
    return folder, validated(json.loads((folder / "fix.json").read_text())), done.stdout


def test_the_plan_fits_and_is_the_fastest(found):
    """Below the limit, which leaves head room; of about equal times the least change."""
    _, answer, said = found
    best = answer["best"]

    assert said.startswith(f"Plan: {best['candidate']['title']}. Predicted peak ")
    assert best["outcome"]["reserved_bytes"] <= answer["limit_bytes"] < answer["usable_bytes"]
    assert answer["original"]["outcome"]["reserved_bytes"] > answer["limit_bytes"]
    fitting = [each["outcome"]["seconds"] for each in answer["tried"] if each["fits"]]
    assert best["outcome"]["seconds"] <= 1.02 * min(fitting)


def test_a_run_under_the_plan_needs_what_was_predicted(found):
    """The same simulation, in another process."""
    folder, answer, _ = found

    report = json.loads(
        peaksight("run", "--gpu", "t4", "--plan", "plan.json", "--json", "-", "train.py", cwd=folder).stdout
    )

    outcome = answer["best"]["outcome"]
    assert report["peak"]["allocated_bytes"] == outcome["allocated_bytes"]
    assert report["peak"]["reserved_bytes"] == outcome["reserved_bytes"]


@pytest.mark.slow
def test_a_certified_plan_and_its_diff(tmp_path):
    """The plan keeps its class in real runs of a smaller size; what the diff makes of the script needs as much."""
    script = tmp_path / "train.py"
    script.write_text((SCRIPT.parent / "parameters.py").read_text())
    words = ["--gpu", "t4", "--memory", "1040MiB", "--candidates", "3", "--apply", "plan.json", "--json", "-"]
    words += ["--certify", "--with", "64", "--steps", "2"]
    answer = json.loads(peaksight("fix", *words, "train.py", cwd=tmp_path).stdout)

    subprocess.run(["patch", "-p1", "-i", "plan.diff"], cwd=tmp_path, check=True)
    report = json.loads(peaksight("run", "--gpu", "t4", "--json", "-", "train.py", cwd=tmp_path).stdout)

    assert answer["certificate"]["verdict"] == "rounding" and answer["certificate"]["changed"][-1] == "64"
    assert [(each["at"], each["in_diff"]) for each in answer["written"]] == [("train.py:11", True)]
    assert answer["diff"] == (tmp_path / "plan.diff").read_text()
    assert "    lr=1e-3,  # a usual one\n    fused=True,\n)" in script.read_text()
    assert report["peak"]["reserved_bytes"] == answer["best"]["outcome"]["reserved_bytes"]


def test_every_fix_is_told_alone_and_left_out(found):
    """The plan without a part of it is the original where it has one part."""
    _, answer, said = found

    assert [part["title"] for part in answer["parts"]] == answer["best"]["candidate"]["title"].split(" + ")
    assert "What each fix does to the peak" in said


def test_the_plan_is_for_that_script_as_it_was(found):
    """Neither for another one nor after a change."""
    folder, _, _ = found
    (folder / "other.py").write_text(SCRIPT.read_text())
    (folder / "changed").mkdir(exist_ok=True)
    (folder / "changed" / "train.py").write_text(SCRIPT.read_text() + "\n# longer\n")

    for script, message in (
        ("other.py", "is for train.py, not for other.py"),
        ("changed/train.py", "has changed since"),
    ):
        done = peaksight("run", "--plan", "plan.json", script, cwd=folder)
        assert done.returncode == 2
        assert message in done.stderr


def test_what_fits_needs_no_fix(tmp_path):
    """Nothing is searched, and the plan changes nothing."""
    done = peaksight("fix", "--gpu", "t4", str(SCRIPT), cwd=tmp_path)

    assert done.returncode == 0
    assert done.stdout.startswith("Nothing to fix: ")


def test_no_plan_fits(tmp_path):
    """The smallest is named, with what is missing, and nothing is written."""
    words = ["--gpu", "t4", "--memory", "300MiB", "--candidates", "4", "--apply", "plan.json"]
    done = peaksight("fix", *words, str(SCRIPT), cwd=tmp_path)

    assert done.returncode == 1
    assert done.stdout.startswith("No plan fits ")
    assert "too much" in done.stdout.partition("\n\n")[0]
    assert not (tmp_path / "plan.json").exists()


def test_a_script_that_fails_has_no_plan(tmp_path):
    """What is wrong with it is not memory."""
    (tmp_path / "train.py").write_text("raise ValueError('no data')\n")

    done = peaksight("fix", "--gpu", "t4", "train.py", cwd=tmp_path)

    assert done.returncode == 2
    assert "ValueError: no data" in done.stderr
    assert "No plan: the run as it is has no answer yet" in done.stderr


def test_a_script_that_is_not_there(tmp_path):
    """One sentence, from whichever process finds out."""
    done = peaksight("fix", "--gpu", "t4", "train.py", cwd=tmp_path)

    assert done.returncode == 2
    assert "Can't run 'train.py': there is no such file." in done.stderr
    assert "Traceback" not in done.stderr


def test_the_plan_expects_what_a_real_run_has(found):
    """Parameters are counted, of which every one is trained here; a generator has no epoch."""
    folder, _, _ = found
    expected = validated(json.loads((folder / "plan.json").read_text()))["expected"]

    count = 6 * (2 * 256 * 1024 + 256 + 1024)
    assert (expected["parameters"], expected["trainable"], expected["steps_per_epoch"]) == (count, count, 0)


@pytest.mark.slow
def test_a_run_and_its_plan(tmp_path):
    """Below the report of a run that does not fit, whose exit code it keeps."""
    (tmp_path / "train.py").write_text((SCRIPT.parent / "parameters.py").read_text())
    done = peaksight("run", "--gpu", "t4", "--memory", "1040MiB", "--fix", "train.py", cwd=tmp_path)

    assert done.returncode == 1
    assert done.stdout.startswith("Does not fit: ")
    assert "\n\nPlan: " in done.stdout and "Plans that fit (predicted)" in done.stdout


def test_a_plan_and_the_search_for_one(tmp_path):
    """Are two questions."""
    done = peaksight("run", "--fix", "--plan", "plan.json", "train.py", cwd=tmp_path)

    assert done.returncode == 2
    assert "--fix searches for a plan, and --plan gives one" in done.stderr


def test_a_plan_that_exists_is_named_by_its_option(tmp_path):
    """Before anything is simulated."""
    (tmp_path / "plan.json").touch()

    done = peaksight("fix", "--gpu", "t4", "--apply", "plan.json", str(SCRIPT), cwd=tmp_path)

    assert done.returncode == 2
    assert "plan.json exists: choose another file for --apply, or pass --force" in done.stderr


@pytest.mark.skipif(find_spec("jax") is not None, reason="tests/jax_programs has its plans")
def test_a_script_under_jax_without_jax(tmp_path):
    """Nothing plans it here, which is said."""
    (tmp_path / "train.py").write_text("import jax\n")

    done = peaksight("fix", "train.py", cwd=tmp_path)

    assert done.returncode == 2
    assert "#jax-missing" in done.stderr
