"""Tests that need JAX are skipped without it; none of them needs an accelerator."""

import os

import pytest

# Before anything imports JAX.
os.environ.setdefault("JAX_PLATFORMS", "cpu")


def pytest_collection_modifyitems(items):
    """Everything below this folder has the marker `jax`."""
    for item in items:
        if "jax_programs" in str(item.path):
            item.add_marker(pytest.mark.jax)
