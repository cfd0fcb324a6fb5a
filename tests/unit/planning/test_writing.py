"""How the changes of a plan are written into the script."""

import sys
from types import SimpleNamespace

import pytest

from peaksight.planning.writing import written
from peaksight.records.findings import Effect
from peaksight.records.plan import Change
from peaksight.records.proposals import Candidate

SCRIPT = """from transformers import TrainingArguments
options = TrainingArguments("out", per_device_train_batch_size={}, gradient_accumulation_steps=2)
"""


def written_for(folder, source, *changes, arguments=None):
    """What a person is told of `changes` to a script with `source`."""
    (folder / "train.py").write_text(source)
    situation = SimpleNamespace(command=SimpleNamespace(target=str(folder / "train.py")), optimizers=())
    candidate = Candidate(kinds=(), title="", slots=(), effect=Effect.ROUNDING, changes=changes, arguments=arguments)
    told, files = written(situation, candidate)
    return told, files.diff()


@pytest.mark.parametrize("batch, smaller", [("8", "2"), ("args.batch", "args.batch // 4")])
def test_training_arguments(tmp_path, batch, smaller):
    """As many samples a step, a fourth at a time."""
    change = Change(kind="training-arguments", parameters={"parts": 4})

    (told,), diff = written_for(tmp_path, SCRIPT.format(batch), change)

    assert told.at == "train.py:2" and told.in_diff
    assert f'+options = TrainingArguments("out", per_device_train_batch_size={smaller}, ' in diff
    assert "gradient_accumulation_steps=8)" in diff


@pytest.mark.parametrize("batch", ["6", "a + b"])
def test_a_batch_that_cannot_be_divided_in_place(tmp_path, batch):
    """Words, and no diff."""
    change = Change(kind="training-arguments", parameters={"parts": 4})

    (told,), diff = written_for(tmp_path, SCRIPT.format(batch), change)

    assert (told.at, told.in_diff, diff) == ("", False, "")
    assert "`per_device_train_batch_size` of TrainingArguments divided by 4" in told.words


def test_what_is_no_argument_of_a_call(tmp_path):
    """Modules are told by the first and the last where they are many; flags as they are typed."""
    change = Change(kind="checkpoint-modules", parameters={"modules": [f"Net.h.{i}" for i in range(9)]})

    told, diff = written_for(tmp_path, "", change, arguments=("--batch", "4"))

    assert "where the 9 modules Net.h.0 to Net.h.8 are called" in told[0].words
    assert told[1].words == "the script's arguments: --batch 4"
    assert diff == ""


def test_without_the_library_that_edits_calls(monkeypatch, tmp_path):
    """Words, and no diff."""
    monkeypatch.setitem(sys.modules, "libcst", None)
    change = Change(kind="training-arguments", parameters={"parts": 4})

    (told,), diff = written_for(tmp_path, SCRIPT.format("8"), change)

    assert (told.at, told.in_diff, diff) == ("", False, "")
    assert "divided by 4" in told.words
