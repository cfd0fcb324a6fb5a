"""Tests that need JAX are skipped without it; none of them needs an accelerator."""

import os

import pytest

# Before anything imports JAX.
os.environ.setdefault("JAX_PLATFORMS", "cpu")
os.environ.setdefault("XLA_FLAGS", "--xla_force_host_platform_device_count=2")


def pytest_collection_modifyitems(items):
    """Everything below this folder has the marker `jax`."""
    for item in items:
        if "jax_programs" in str(item.path):
            item.add_marker(pytest.mark.jax)
