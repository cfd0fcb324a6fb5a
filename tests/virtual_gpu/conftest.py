"""Fixtures of the virtual GPU's tests."""

import sys

import pytest


@pytest.fixture
def virtual_gpu():
    """An H100 with the rules of torch 2.11+cu130, put in for the length of the test."""
    from .cards import h100

    with h100() as gpu:
        yield gpu


@pytest.fixture(autouse=True)
def fresh_accelerate():
    """accelerate keeps one state a process, which the next test in it must not find."""
    yield
    if state := sys.modules.get("accelerate.state"):
        state.AcceleratorState._reset_state(reset_partial_state=True)
        state.GradientState._reset_state()
