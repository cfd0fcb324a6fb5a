"""Fixtures of the script runner's tests."""

import pytest

from .homes import fingerprint, make_home


@pytest.fixture
def home(tmp_path, monkeypatch):
    """A person's directory, the working directory of the test; it must be the same after the test."""
    home = make_home(tmp_path / "home")
    monkeypatch.chdir(home)
    before = fingerprint(home)
    yield home

    assert before == fingerprint(home)
