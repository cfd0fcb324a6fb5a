"""Bad input to `peaksight run`: GIVEN a command without an answer, THEN one clear sentence, and exit 2."""

import json

import pytest

from helpers_commands import peaksight

pytestmark = pytest.mark.torch

INFERENCE = """
import torch
model = torch.nn.Linear(1024, 1024).to("cuda")
model(torch.ones(1, 1024, device="cuda"))
"""


@pytest.fixture
def simulate(tmp_path):
    """Runs a script of this text on a T4: the finished process."""

    def run(text, *options):
        (tmp_path / "train.py").write_text(text)
        return peaksight("run", "--gpu", "t4", *options, "train.py", cwd=tmp_path)

    return run


def messages(done):
    """What peaksight says on stderr, but for the steps."""
    lines = [line for line in done.stderr.splitlines() if line.startswith("peaksight: ")]
    return [line.removeprefix("peaksight: ") for line in lines if not line.startswith("peaksight: step")]


def test_a_script_that_never_trains(simulate):
    """GIVEN a model that is only evaluated, THEN the report so far, and why it is no answer."""
    done = simulate(INFERENCE)

    assert done.returncode == 2
    assert done.stdout.startswith("No answer for a Tesla T4: predicted peak so far")
    (message,) = messages(done)
    assert message.startswith(
        "No answer: the script never stepped an optimizer, so nothing says that its peak is that of"
    )
    assert message.endswith("See docs/messages.md#untrained.")


def test_a_script_that_is_not_meant_to_train(simulate):
    """GIVEN the same model, WHEN no step is asked for, THEN its peak is the answer."""
    done = simulate(INFERENCE, "--steps", "0", "--json", "-")
    report = json.loads(done.stdout)

    assert (done.returncode, report["fits"], report["finished"]) == (0, True, "script")


def test_a_script_that_runs_out_of_memory_before_it_trains(simulate):
    """GIVEN a model of 64 GiB, THEN that it never trained does not matter."""
    done = simulate(INFERENCE.replace("1024, 1024", "1 << 17, 1 << 17"))

    assert done.returncode == 1
    assert done.stdout.startswith("Does not fit: needs at least 64.0")
    assert "untrained" not in done.stderr


def test_a_missing_extension_is_explained_after_its_traceback(simulate):
    """GIVEN an import of mamba_ssm, THEN Python's traceback, and a way out."""
    done = simulate("import mamba_ssm")

    assert done.returncode == 2
    assert (
        "ModuleNotFoundError: No module named 'mamba_ssm'\npeaksight: 'mamba_ssm' is not installed in " in done.stderr
    )
    assert messages(done)[0].endswith("See docs/messages.md#not-installed.")
