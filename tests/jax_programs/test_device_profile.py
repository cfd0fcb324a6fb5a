"""A profile that JAX itself writes."""

import pytest

jax = pytest.importorskip("jax")

import jax.numpy as jnp  # noqa: E402

from peaksight.postmortem.profiles import is_profile, read_profile  # noqa: E402


def test_live_arrays_are_found_at_their_lines(tmp_path):
    """All of an array's bytes, at the line of this file that made it."""
    held = jnp.ones((1024, 3333))
    path = tmp_path / "memory.prof"
    jax.profiler.save_device_memory_profile(str(path))
    seen = read_profile(path)

    assert is_profile(path)
    assert any(h.bytes == held.nbytes and h.source.startswith("test_device_profile.py:") for h in seen.holders)
