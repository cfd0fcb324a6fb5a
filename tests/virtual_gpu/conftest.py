"""Fixtures of the virtual GPU's tests."""

import pytest


@pytest.fixture
def virtual_gpu():
    """An H100 with the rules of torch 2.11+cu130, put in for the length of the test."""
    from .cards import h100

    with h100() as gpu:
        yield gpu
