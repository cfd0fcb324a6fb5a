"""`peaksight.peak()` of what trains under JAX."""

import importlib

import pytest

pytest.importorskip("jax")

import peaksight

TRAIN = """
import jax, jax.numpy as jnp

@jax.jit
def step(w, x):
    return w - 0.1 * jax.grad(lambda w: jnp.mean(jnp.tanh(x @ w) ** 2))(w)

def train():
    w = jnp.ones((1024, 1024))
    for _ in range(2):
        w = step(w, jnp.ones((64, 1024)))
"""


@pytest.mark.parametrize("what", ["function", "code"])
def test_a_function_and_code_as_text(tmp_path, monkeypatch, what):
    """Both are simulated in a process of their own, which trains under JAX whether the code itself says so or not."""
    (tmp_path / "trains_in_jax.py").write_text(TRAIN)
    monkeypatch.syspath_prepend(tmp_path)
    train = importlib.import_module("trains_in_jax").train

    prediction = peaksight.peak(train if what == "function" else f"{TRAIN}\ntrain()", gpu="t4", calls=1)

    assert prediction.peak_bytes > 8 << 20
    assert [each.name for each in prediction.report.programs] == ["step"]
