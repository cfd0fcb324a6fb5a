"""Two functions that train the same model, or do not."""

import io

import pytest

jax = pytest.importorskip("jax")
optax = pytest.importorskip("optax")

import jax.numpy as jnp  # noqa: E402
from rich.console import Console  # noqa: E402

from peaksight.jax import verify as verify_functions  # noqa: E402
from peaksight.reporting.certificate import render_certificate  # noqa: E402

TX = optax.adam(1e-2)
SHAPE = jax.ShapeDtypeStruct
PARAMS = [{"w": SHAPE((32, 32), jnp.float32)} for _ in range(2)]
STATE = {"params": PARAMS, "opt": jax.eval_shape(TX.init, PARAMS)}
BATCH = SHAPE((8, 32), jnp.float32)


def block(x, w):
    return jnp.tanh(x @ w)


def step(block, of=lambda x: x, scale=1.0):
    def loss(params, x):
        for layer in params:
            x = block(of(x), layer["w"])
        return scale * jnp.mean((x - 1) ** 2)

    def one(state, x):
        value, grads = jax.value_and_grad(loss)(state["params"], x)
        updates, opt = TX.update(grads, state["opt"])
        return {"params": optax.apply_updates(state["params"], updates), "opt": opt}, {"loss": value, "grads": grads}

    return one


def other_order(x, w):
    half = w.shape[0] // 2
    return jnp.tanh(x[:, half:] @ w[half:] + x[:, :half] @ w[:half])


def test_the_same_function_is_bitwise_the_same():
    """In both steps that its state allows, without a reference."""
    seen = verify_functions(step(block), step(block), STATE, BATCH)

    assert ("bitwise", True, 2) == (seen.verdict, seen.same, seen.steps)
    assert "not needed" in seen.reference


@pytest.mark.parametrize("change", [jax.checkpoint(block), other_order], ids=["checkpoint", "other order"])
def test_what_changes_only_the_rounding(change):
    """Recomputing, or adding in another order."""
    seen = verify_functions(step(block), step(change), STATE, BATCH)

    assert seen.verdict in ("bitwise", "rounding"), seen.reasons
    assert seen.same


@pytest.mark.parametrize(
    "changed",
    [step(block, of=jax.lax.stop_gradient), step(block, scale=1.001), step(lambda x, w: jnp.tanh(1.0001 * (x @ w)))],
    ids=["no gradient before", "another scale", "another function"],
)
def test_what_trains_otherwise(changed):
    """Gradients that are missing or other are found, also where the loss is the same."""
    seen = verify_functions(step(block), changed, STATE, BATCH)

    assert ("different", False) == (seen.verdict, seen.same)
    assert "grads" in seen.worst.name or "params" in seen.worst.name


def test_half_precision_is_not_rounding():
    """Products in bfloat16 round thousands of times worse."""

    def half(x, w):
        return jnp.tanh((x.astype(jnp.bfloat16) @ w.astype(jnp.bfloat16)).astype(jnp.float32))

    assert "different" == verify_functions(step(block), step(half), STATE, BATCH).verdict


def test_functions_that_return_other_things():
    """Named one by one."""
    seen = verify_functions(lambda x: {"a": x, "b": x}, lambda x: {"a": x.astype(jnp.bfloat16), "c": x}, BATCH)

    assert "different" == seen.verdict
    assert {
        "only the original returns b",
        "only the changed function returns c",
        "a is float32[8, 32] in the original, bfloat16[8, 32] in the changed function",
    } == set(seen.reasons)


def test_the_page_of_it():
    """The same as for scripts."""
    console = Console(file=io.StringIO(), width=100)
    render_certificate(verify_functions(step(block), step(block, scale=2.0), STATE, BATCH), console)

    assert console.file.getvalue().startswith("Different training: refused")
