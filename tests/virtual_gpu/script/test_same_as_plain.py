"""A script sees the same files in a scratch as in a plain run, and the person's files stay as they are."""

import os
import shutil
import subprocess
import sys
from pathlib import Path

from peaksight.records import ScriptCommand
from peaksight.virtual_gpu.script import Scratch, run_script

from .homes import fingerprint, make_home

FILE_SCRIPT = Path(__file__).with_name("file_script.py")


def home_with_script(home):
    shutil.copy(FILE_SCRIPT, make_home(home) / "train.py")
    return home


def test_a_script_that_does_everything_to_files(tmp_path, monkeypatch, capfd):
    """Every line that it prints about its files is the one of a plain run in a copy of the directory."""
    plain = subprocess.run(
        [sys.executable, "train.py"], cwd=home_with_script(tmp_path / "plain"), capture_output=True, text=True
    )
    home = home_with_script(tmp_path / "simulated")
    monkeypatch.chdir(home)
    before = fingerprint(home)

    with Scratch() as scratch:
        exit_code = run_script(ScriptCommand(target="train.py")).exit_code

    assert (plain.returncode, plain.stderr) == (0, "")
    assert exit_code == 0
    assert plain.stdout == capfd.readouterr().out
    assert before == fingerprint(home)
    assert {"best.pt", "train.log", "runs.db", "touched"} <= {write.path for write in scratch.writes()}


def test_the_working_directory_is_the_persons(tmp_path, monkeypatch):
    """Wherever the script went, also in directories that it made, the caller is back where it was."""
    home = make_home(tmp_path / "home")
    monkeypatch.chdir(home)
    (home / "train.py").write_text("import os; os.makedirs('new/place'); os.chdir('new/place'); os.chdir('..')")

    with Scratch():
        assert 0 == run_script(ScriptCommand(target="train.py")).exit_code
        assert str(home) == os.getcwd()
        os.mkdir("other")
        os.chdir("other")

    assert str(home) == os.getcwd()


def test_absolute_paths_from_elsewhere(tmp_path, monkeypatch):
    """A person's file is as safe when the run starts in another directory."""
    home = make_home(tmp_path / "home")
    monkeypatch.chdir(tmp_path)
    before = fingerprint(home)

    with Scratch() as scratch:
        (home / "notes.txt").write_text("changed")
        shutil.rmtree(home / "data")

        assert (home / "notes.txt").read_text() == "changed"

    assert before == fingerprint(home)
    assert [write.path for write in scratch.writes()] == ["home/data/", "home/notes.txt"]
