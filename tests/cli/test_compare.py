"""`peaksight compare`: GIVEN two runs, THEN where the difference of their peaks comes from."""

import json
import subprocess
import sys
from pathlib import Path

import pytest

from helpers import allocation_of, capture_of
from peaksight.cli.compared import compared
from peaksight.cli.simulation_options import SimulationOptions
from peaksight.gpus import find_card, room_on
from peaksight.records import Role
from peaksight.records.capture_file import write_capture_file
from peaksight.units import GIB

MLP = Path(__file__).parents[1] / "scripts" / "mlp.py"


@pytest.fixture
def saved(tmp_path):
    """The files of two runs: of 1 GiB on a T4, and of 3 GiB more on an H100."""
    parameters = allocation_of(GIB, born=1, role=Role.PARAMETER, source="train.py:2")
    more = allocation_of(3 * GIB, born=2, source="train.py:8", module="Model.mlp")
    write_capture_file(tmp_path / "a.capture", [capture_of(parameters)], room_on(find_card("t4")))
    write_capture_file(tmp_path / "b.capture", [capture_of(parameters, more)], room_on(find_card("h100-80gb")))
    return "a.capture", "b.capture"


def adds_up(found):
    """Whether each table gives the difference and both peaks."""
    a, b = (found[run]["peak"]["allocated_bytes"] for run in "ab")
    tables = found["by_category"], found["by_module"], found["by_line"]
    sums = [
        tuple(sum(row[key] for row in rows) for key in ("a_bytes", "b_bytes", "difference_bytes")) for rows in tables
    ]
    return sums == [(a, b, b - a)] * 3 and found["allocated_difference_bytes"] == b - a


def test_two_captures(peaksight, saved, tmp_path):
    """Their page, and the files asked for: options may come behind the two."""
    done = peaksight("compare", *saved, "--json", "found.json", "--html", "found.html")
    found = json.loads((tmp_path / "found.json").read_text())

    assert done.returncode == 0
    assert " ".join(done.stdout.split()).startswith(
        "B peaks 3.00 GiB higher than A (predicted): 4.00 GiB instead of 1.00 GiB allocated"
    )
    assert "a.capture: train.py" in done.stdout
    assert "fits a Tesla T4" in done.stdout
    assert "fits an NVIDIA H100" in done.stdout
    assert adds_up(found)
    assert found["schema"] == "peaksight.comparison/1"
    assert "B peaks 3.00 GiB higher" in (tmp_path / "found.html").read_text()


def test_json_alone_on_stdout(peaksight, saved):
    """WHEN the JSON goes to stdout, THEN nothing else does."""
    assert json.loads(peaksight("compare", "--json", "-", *saved).stdout)["b"]["given"] == "b.capture"


def test_captures_need_no_torch(saved, tmp_path):
    """They are compared at once, and on a machine without torch."""
    code = (
        "import sys; from peaksight.cli import main; "
        "code = main(['compare', *sys.argv[1:]]); print(code, {'torch', 'numpy'} & set(sys.modules), file=sys.stderr)"
    )
    command = [sys.executable, "-c", code, *saved]
    done = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, check=True)

    assert done.stderr.strip() == "0 set()"


@pytest.mark.torch
def test_a_capture_and_what_became_of_its_script(peaksight, tmp_path):
    """GIVEN a run that was saved and a script that was edited since, THEN its lines are found by what they say."""
    script = tmp_path / "train.py"
    script.write_text(MLP.read_text())
    peaksight("run", "--gpu", "t4", "--save", "a.capture", "train.py", "--batch", "8")
    script.write_text(
        "# two lines\n# more\n" + MLP.read_text().replace("AdamW(model.parameters())", "SGD(model.parameters(), 0.1)")
    )
    done = peaksight("compare", "--gpu", "t4", "--json", "found.json", "a.capture", "train.py --batch 4096")
    found = json.loads((tmp_path / "found.json").read_text())
    lines = {row["text"]: (row["a_source"], row["b_source"], row["matched"]) for row in found["by_line"]}

    assert done.returncode == 0
    assert adds_up(found)
    assert lines["loss = nn.functional.mse_loss(model(x), x)"] == ("train.py:23", "train.py:25", "text")
    assert "moved from the optimizer step to the backward" in done.stdout
    assert "step 1 loss" in done.stderr
    assert "peaksight: B: train.py --batch 4096" in done.stderr
    assert "Wrote" in done.stderr
    assert ".capture" not in done.stderr


def test_options_in_the_quotes_count_for_one(tmp_path, monkeypatch):
    """They come before those that both share; what follows the script belongs to it."""
    (tmp_path / "train.py").touch()
    monkeypatch.chdir(tmp_path)
    shared = SimulationOptions(gpu="t4", steps=2)
    own = compared("--gpu h200 --memory 8GiB A=1 train.py --steps 9", shared)
    module = compared("--worst-batch -m pkg.train", shared)

    assert own.options == SimulationOptions(gpu="h200", steps=2, memory=8 * GIB)
    assert own.words == ("A=1", "train.py", "--steps", "9")
    assert (module.options.worst_batch, module.words) == (True, ("-m", "pkg.train"))
    assert compared("train.py", shared).options == shared


@pytest.mark.torch
def test_a_command_without_an_answer(peaksight, saved):
    """Exit 2, nothing on stdout, and at last one sentence that says which run it is and why."""
    done = peaksight("compare", saved[0], "-m absent --batch 8")

    assert (done.returncode, done.stdout) == (2, "")
    assert done.stderr.splitlines()[-1].startswith(
        "peaksight: Can't compare: B gives no answer (Can't run '-m absent': there is no such module."
    )
    assert done.stderr.endswith("docs/messages.md#no-peak.\n")


@pytest.mark.parametrize(
    ("finished", "said"),
    [
        ("failed", "(the script failed in step 1)"),
        ("untrained", "(the script ran to its end without an optimizer step)"),
        ("interrupted", "(interrupted without an optimizer step)"),
    ],
)
def test_a_capture_without_an_answer(peaksight, saved, tmp_path, finished, said):
    """Its peak is not that of the training."""
    capture = capture_of(allocation_of(GIB, born=1), finished=finished)
    write_capture_file(tmp_path / "bad.capture", [capture], room_on(find_card("t4")))
    done = peaksight("compare", "bad.capture", saved[0])

    assert (done.returncode, done.stdout) == (2, "")
    assert f"A gives no answer {said}" in done.stderr


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (("train.py",), "#two-runs"),
        (("train.py", "--batch", "8"), "No such option"),
        (("train.py", "train.py", "--batch 8"), "#two-runs"),
        (("train.py 'a", "train.py"), "#nothing-to-run"),
        (("", "train.py"), "#nothing-to-run"),
        (("absent.capture", "train.py"), "#cannot-run-script"),
        ((str(MLP), "absent.py --batch 8"), "#cannot-run-script"),
        (("--gpu t5 train.py", "train.py"), "#unknown-gpu"),
        ((str(MLP), "--html page.html train.py"), "No such option"),
        (("mpirun train.py", "train.py"), "#launcher"),
    ],
)
def test_what_cannot_be_understood_is_refused_before_anything_runs(peaksight, words, said):
    """Exit 2 and one message, whichever of the two it is."""
    done = peaksight("compare", *words)

    assert (done.returncode, done.stdout) == (2, "")
    assert said in done.stderr.splitlines()[-1]
