"""Changing modules that are imported later."""

import sys

import pytest

from peaksight.overlays.late_imports import change_modules
from peaksight.overlays.patches import Patches

pytestmark = pytest.mark.torch


@pytest.fixture
def module(tmp_path, monkeypatch):
    """The name of a module on the path that is not loaded."""
    (tmp_path / "latecomer.py").write_text("answer = 1\nasked = answer\n")
    monkeypatch.syspath_prepend(tmp_path)
    monkeypatch.delitem(sys.modules, "latecomer", raising=False)
    yield "latecomer"
    sys.modules.pop("latecomer", None)


@pytest.mark.parametrize("is_loaded", [True, False])
def test_a_module_is_changed_once_it_is_there(module, is_loaded):
    """Whether it is loaded before or after, by both who ask for it; afterwards it is as it was."""
    finders = sys.meta_path[:]
    if is_loaded:
        __import__(module)
    with Patches() as patches:
        for name, value in (("answer", 2), ("other", 3)):
            change_modules(patches, {module: lambda loaded, n=name, v=value: patches.set(loaded, n, v)})
        loaded = __import__(module)
        assert (2, 1, 3) == (loaded.answer, loaded.asked, loaded.other)

    assert (1, False) == (loaded.answer, hasattr(loaded, "other"))
    assert finders == sys.meta_path


def test_a_script_that_clears_the_finders(module):
    """What it took away is not missed at the end."""
    finders = sys.meta_path[:]
    with Patches() as patches:
        patches.callback(setattr, sys, "meta_path", sys.meta_path)
        change_modules(patches, {module: print})
        sys.meta_path[:] = finders


def test_a_finder_of_another_age(module, monkeypatch):
    """One without `find_spec`, as pygal adds, is passed over as Python does."""
    monkeypatch.setattr(sys, "meta_path", [object(), *sys.meta_path])
    with Patches() as patches:
        change_modules(patches, {module: lambda loaded: patches.set(loaded, "answer", 2)})
        assert __import__(module).answer == 2
