"""Where the person's own code is, of a script, a module and an installed program."""

import os
import sysconfig

import pytest
import torch

from peaksight.records import ScriptCommand
from peaksight.virtual_gpu.script.environment import variables
from peaksight.virtual_gpu.script.program import source_directory
from peaksight.virtual_gpu.source_lines import SourceLines

pytestmark = pytest.mark.torch


@pytest.fixture
def here(tmp_path, monkeypatch):
    """The working directory, with a package."""
    (tmp_path / "package").mkdir()
    monkeypatch.chdir(tmp_path)
    return tmp_path


def test_beside_the_script(here):
    """Wherever the person is."""
    assert source_directory(ScriptCommand(target="train.py")) == str(here)
    assert source_directory(ScriptCommand(target="sub/train.py")) == str(here / "sub")


def test_of_a_module_here_and_of_a_program_of_nobody(here):
    """The working directory, to which tracebacks are read."""
    assert source_directory(ScriptCommand(target="package.train", is_module=True)) == str(here)
    assert source_directory(ScriptCommand(target="nowhere.train", is_module=True)) == str(here)
    assert source_directory(ScriptCommand(target=str(here / "bin" / "mytrain"))) == str(here)


def test_of_an_installed_module_and_of_a_console_script(here):
    """Its package, whose lines are the person's then; those of others are not."""
    directory = torch.__path__[0]

    assert source_directory(ScriptCommand(target="torch.utils.collect_env", is_module=True)) == directory
    assert source_directory(ScriptCommand(target="/opt/bin/torchrun")) == directory


@pytest.mark.parametrize(
    "packages",
    [sysconfig.get_path("purelib"), "/home/me/.local/lib/python3/site-packages", "/usr/lib/python3/dist-packages"],
)
def test_lines_of_an_installed_package(packages):
    """Named below it when it is what runs, wherever packages are: in this environment or one that it builds on."""
    source = compile("def where(lines):\n    return lines.current()", f"{packages}/mypackage/cli.py", "exec")
    names: dict = {}
    exec(source, names)

    assert names["where"](SourceLines(f"{packages}/mypackage")).source == "cli.py:2"
    assert names["where"](SourceLines("/elsewhere")).library == "mypackage/cli.py:2"


def test_a_file_that_the_run_has_written_is_no_line_of_the_person():
    """A template of a library, in the run's temporary folder; a folder of the person may have a like name."""
    names: dict = {}
    exec(compile("def where(lines):\n    return lines.current()", "/tmp/peaksight-a1/tmp/layer_x.py", "exec"), names)
    assert names["where"](SourceLines("/elsewhere")).source.startswith(__file__)

    exec(compile("def where(lines):\n    return lines.current()", "/home/me/peaksight-a1/train.py", "exec"), names)
    assert names["where"](SourceLines("/home/me/peaksight-a1")).source == "train.py:2"


def test_variables_are_put_back(monkeypatch):
    """Those that were set, unset and added."""
    monkeypatch.setenv("SET", "1")
    monkeypatch.setenv("UNSET", "2")
    before = dict(os.environ)
    with pytest.raises(KeyError), variables([("SET", "3"), ("UNSET", None), ("NEW", "4")]):
        assert (os.environ["SET"], "UNSET" in os.environ, os.environ["NEW"]) == ("3", False, "4")
        raise KeyError

    assert before == dict(os.environ)
