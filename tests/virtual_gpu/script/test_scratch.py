"""The scratch: what it lists, and what other modules use to write by other means."""

import importlib
import os
import shutil
import sys
import tempfile
from pathlib import Path

import numpy as np
import pytest

from peaksight.records import ScratchWrite
from peaksight.virtual_gpu.script import Scratch


def listed(scratch):
    return [(write.path, write.kind, write.bytes) for write in scratch.writes()]


def test_writes_are_named_from_the_working_directory(home, tmp_path):
    """Relative below it, absolute elsewhere; with the size written, in order of name."""
    with Scratch() as scratch:
        Path("new.txt").write_text("12345")
        (home / "data" / "a.txt").write_text("1")
        (tmp_path / "elsewhere.txt").write_text("12")
        during = scratch.writes()

    assert during == scratch.writes()
    assert [
        (f"{tmp_path}/elsewhere.txt", "written", 2),
        ("data/a.txt", "written", 1),
        ("new.txt", "written", 5),
    ] == listed(scratch)
    assert ScratchWrite(path="new.txt", bytes=5, kind="written") in scratch.writes()


def test_deletions_renames_and_directories_are_listed(home):
    """A rename of the person's file is a deletion and a write; a directory made again was deleted all the same."""
    with Scratch() as scratch:
        os.rename("notes.txt", "renamed.txt")
        shutil.rmtree("runs")
        os.makedirs("runs/2")
        Path("short-lived.txt").touch()
        os.remove("short-lived.txt")
        Path("old.txt").unlink()
        Path("old.txt").touch()

    assert [
        ("notes.txt", "deleted", 0),
        ("old.txt", "written", 0),
        ("renamed.txt", "written", 3 * len("the person's notes.txt\n")),
        ("runs/", "deleted", 0),
        ("runs/2/", "written", 0),
    ] == listed(scratch)


def test_reading_writes_nothing(home):
    """Nothing is listed, and nothing copied, for what is only looked at."""
    with Scratch() as scratch:
        Path("notes.txt").read_text()
        list(Path().rglob("*"))
        with tempfile.NamedTemporaryFile() as file:
            file.write(b"temporary files are not the person's")

    assert [] == listed(scratch)


def test_the_scratch_directory_is_removed(home):
    """Nothing of it stays, be it a temporary file of the script's."""
    with Scratch() as scratch:
        Path("new.txt").touch()
        made = [tempfile.mkdtemp(), scratch.redirect_read("new.txt")]
        assert all(map(os.path.exists, made))

    assert not any(map(os.path.exists, made))


def test_redirected_and_declared_writes(home):
    """A writer by other means asks where to write, says how large the real file is, and is seen by the script."""
    with Scratch() as scratch:
        real = scratch.redirect_write("best.pt")
        with open(real, "w") as file:
            file.write("stand-in")
        scratch.declare(b"stand-in", 1000)

        assert "stand-in" == Path("best.pt").read_text()
        assert real == scratch.redirect_read(home / "best.pt")
        assert str(home / "notes.txt") == scratch.redirect_read("notes.txt")
        assert "/dev/null" == scratch.redirect_write("/dev/null")
    assert [("best.pt", "written", 1000)] == listed(scratch)


def test_a_declared_size_follows_what_stands_for_it(home):
    """It goes with a rename and a copy, counts beside what comes after it, and goes when the file is written again."""
    with Scratch() as scratch:
        scratch.declare(b"stand-in", 1000)
        for name in ("a.tmp", "b.pt", "c.pt"):
            Path(name).write_bytes(b"stand-in")
        os.replace("a.tmp", "a.pt")
        Path("b.pt").write_text("small")
        shutil.copy("c.pt", "d.pt")
        with open("d.pt", "a") as file:
            file.write("more")

    assert [("a.pt", 1000), ("b.pt", 5), ("c.pt", 1000), ("d.pt", 1004)] == [
        (name, size) for name, _, size in listed(scratch)
    ]


def test_a_redirected_write_fails_as_a_real_one(home):
    """A missing directory is the script's error."""
    with Scratch() as scratch, pytest.raises(FileNotFoundError):
        scratch.redirect_write("missing/best.pt")


def test_errors_name_the_file_as_the_script_did(home):
    """No message shows a path in the scratch directory."""
    with Scratch():
        for attempt in (
            lambda: Path("missing/x.txt").write_text(""),
            lambda: np.save("missing/x.npy", np.zeros(1)),
            lambda: os.rename("missing", "other"),
            lambda: shutil.copy("notes.txt", "missing/"),
        ):
            with pytest.raises(OSError) as raised:
                attempt()

            assert "peaksight-" not in str(raised.value)
            assert "missing" in str(raised.value)


def test_one_scratch_after_another(home):
    """A module imported in one run keeps working in the next, and without any."""
    namespace = {}
    with Scratch():
        exec("from os import remove, listdir; from builtins import open", namespace)
        namespace["open"]("first.txt", "w").close()
    assert "first.txt" not in namespace["listdir"]()
    with Scratch() as second:
        namespace["remove"]("notes.txt")
        assert "notes.txt" not in namespace["listdir"]()

    assert "notes.txt" in namespace["listdir"]()
    assert [("notes.txt", "deleted", 0)] == listed(second)


def test_bytecode_of_installed_packages_is_kept(home, tmp_path, monkeypatch):
    """As without a scratch, so that the next run need not compile them; none is written for the person's modules."""
    monkeypatch.setattr(sys, "pycache_prefix", str(tmp_path / "bytecode"))
    monkeypatch.setattr(sys, "dont_write_bytecode", False)
    monkeypatch.syspath_prepend(str(tmp_path))
    (tmp_path / "own_module.py").touch()
    for name in ("colorsys", "own_module"):
        monkeypatch.delitem(sys.modules, name, raising=False)
    with Scratch() as scratch:
        importlib.import_module("colorsys")
        importlib.import_module("own_module")

    kept = [path.name.partition(".")[0] for path in (tmp_path / "bytecode").rglob("*.pyc")]
    assert ["colorsys"] == kept
    assert not scratch.writes()
