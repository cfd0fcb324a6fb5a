"""What is said where something is not installed."""

import sys

import pytest

from peaksight.cli import main
from peaksight.errors import UnsupportedError
from peaksight.extras import check_jax, check_torch, is_installed


@pytest.mark.parametrize("module, check", [("torch", check_torch), ("jax", check_jax)])
def test_a_framework_that_is_not_there(monkeypatch, module, check):
    """Fact, cause and way out; nothing where it is there."""
    monkeypatch.setitem(sys.modules, module, sys)
    check()
    monkeypatch.setitem(sys.modules, module, None)

    with pytest.raises(UnsupportedError) as raised:
        check()

    assert raised.value.slug == f"{module}-missing"
    assert f"{module} is not installed in {sys.prefix}" in str(raised.value)
    assert f"pip install 'peaksight[{module}]'" in str(raised.value)


@pytest.mark.parametrize("command", [["run"], ["fix"], ["verify", "--against", "train.py"]])
def test_commands_that_need_torch_say_so(monkeypatch, tmp_path, capfd, command):
    """In one sentence, not with a traceback."""
    (tmp_path / "train.py").write_text("import torch\n")
    monkeypatch.chdir(tmp_path)
    monkeypatch.setitem(sys.modules, "torch", None)

    assert main([*command, "train.py"]) == 2
    said = capfd.readouterr().err
    assert "torch-missing" in said and "Traceback" not in said


def test_nothing_is_imported_to_find_out():
    """A module that is there is not loaded by the question."""
    sys.modules.pop("this", None)

    assert is_installed("this") and not is_installed("no_such_module")
    assert "this" not in sys.modules


def test_editing_without_what_edits(monkeypatch, tmp_path, capfd):
    """Is refused before the search."""
    (tmp_path / "train.py").write_text("import torch\n")
    monkeypatch.chdir(tmp_path)
    monkeypatch.setitem(sys.modules, "libcst", None)

    assert main(["fix", "--write", "train.py"]) == 2
    assert "pip install 'peaksight[codemod]'" in "".join(capfd.readouterr().err.splitlines())
