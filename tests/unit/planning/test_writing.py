"""How the changes of a plan are written into the script."""

import sys

import pytest

from helpers import capture_of
from peaksight.planning.situation import Situation
from peaksight.planning.writing import written
from peaksight.records import ScriptCommand
from peaksight.records.findings import Effect
from peaksight.records.plan import Change
from peaksight.records.proposals import Candidate

SCRIPT = """from transformers import TrainingArguments
options = TrainingArguments("out", per_device_train_batch_size={}, gradient_accumulation_steps=2)
"""


def written_for(folder, source, *changes, args=(), arguments=None):
    """What a person is told of `changes` to a script with `source`."""
    (folder / "train.py").write_text(source)
    command = ScriptCommand(target=str(folder / "train.py"), args=args)
    situation = Situation(command=command, room=None, capture=capture_of(), report=None, limit_bytes=1)
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


def test_settings_that_the_command_names(monkeypatch, tmp_path):
    """Where the script fills TrainingArguments from a file, that file is edited."""
    monkeypatch.chdir(tmp_path)
    (tmp_path / "conf").mkdir()
    (tmp_path / "conf/a.yaml").write_text("lr: 1\nper_device_train_batch_size: 8\n")
    change = Change(kind="training-arguments", parameters={"parts": 4})

    (told,), diff = written_for(tmp_path, "", change, args=("--config=conf/a.yaml",))

    assert told.at == "conf/a.yaml:2" and told.in_diff
    assert "+++ b/conf/a.yaml" in diff
    assert "-per_device_train_batch_size: 8\n+gradient_accumulation_steps: 4\n+per_device_train_batch_size: 2" in diff


def test_the_line_that_launches_the_script(tmp_path):
    """Flags that another plan wants, and those of TrainingArguments, whose new values the simulation gets too."""
    (tmp_path / "run.sh").write_text("set -e\npython train.py --per_device_train_batch_size 8 --seed 1\n")
    flags = ("--per_device_train_batch_size", "8", "--seed", "1")
    change = Change(kind="training-arguments", parameters={"parts": 2})

    own, diff = written_for(tmp_path, "", args=flags, arguments=(*flags[:1], "4", *flags[2:]))
    (told,), _ = written_for(tmp_path, "", change, args=flags)

    assert (own[0].at, told.at) == ("run.sh:2", "run.sh:2")
    assert "+python train.py --per_device_train_batch_size 4 --seed 1\n" in diff


def test_a_setting_that_is_not_there_yet(monkeypatch, tmp_path):
    """Beside one that TrainingArguments always have."""
    monkeypatch.chdir(tmp_path)
    (tmp_path / "a.json").write_text('{\n  "output_dir": "out"\n}\n')
    change = Change(kind="autocast", parameters={"dtype": "bfloat16"})

    (told,), diff = written_for(tmp_path, "", change, args=("a.json",))

    assert told.in_diff and '+  "bf16": true,\n   "output_dir": "out"' in diff
