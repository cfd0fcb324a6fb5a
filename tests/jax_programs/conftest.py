"""Tests that need JAX are skipped without it; none of them needs an accelerator."""

import importlib.util
import os
from pathlib import Path

import pytest

# Before anything imports JAX.
os.environ.setdefault("JAX_PLATFORMS", "cpu")
os.environ.setdefault("XLA_FLAGS", "--xla_force_host_platform_device_count=2")


def pytest_collection_modifyitems(items):
    """Everything below this folder has the marker `jax`."""
    for item in items:
        if "jax_programs" in str(item.path):
            item.add_marker(pytest.mark.jax)


@pytest.fixture(scope="session")
def pi0_like():
    """The module with the measured programs, without the variable that it sets for a process of its own."""
    path = Path(__file__).parents[2] / "benchmarks" / "truth" / "jax" / "pi0_like.py"
    spec = importlib.util.spec_from_file_location("pi0_like", path)
    module = importlib.util.module_from_spec(spec)
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("XLA_PYTHON_CLIENT_PREALLOCATE", "false")
        spec.loader.exec_module(module)
    return module
