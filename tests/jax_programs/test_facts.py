"""Real programs, and what the rules find in them."""

import pytest

jax = pytest.importorskip("jax")
optax = pytest.importorskip("optax")

import jax.numpy as jnp  # noqa: E402

from peaksight.diagnosis.jax_diagnose import examine_program  # noqa: E402
from peaksight.jax.facts import program_of  # noqa: E402
from peaksight.records.jax_program import Change  # noqa: E402

N = 512


def matrix(*shape, dtype=jnp.float32):
    return jax.ShapeDtypeStruct(shape or (N, N), dtype)


def program(fn, *args, **options):
    traced = jax.jit(fn, **options).trace(*args)
    return program_of(traced.jaxpr, donated=[info.donated for info in jax.tree.leaves(traced.args_info)])


def causes(fn, *args, **options):
    findings, _ = examine_program(program(fn, *args, **options))
    return {finding.rule: finding for finding in findings}


def pi0_causes(pi0_like, **config):
    fn, args, donate_argnums = pi0_like.build(pi0_like.D | {"variant": "dex", "train": ("exp",)} | config)
    return causes(fn, *args, donate_argnums=donate_argnums)


def sgd(loss):
    def step(params, x):
        grads = jax.grad(loss)(params, x)
        return jax.tree.map(lambda p, g: p - 0.1 * g, params, grads)

    return step


def test_a_state_that_is_not_donated(pi0_like):
    """The fix is simulated: it comes to the program that donates."""
    found = pi0_causes(pi0_like, donate=False)

    assert "jax-state-not-donated" == next(iter(found))
    assert "donate_argnums for `st`" in found["jax-state-not-donated"].fixes[0].text
    assert "jax-state-not-donated" not in pi0_causes(pi0_like)


def test_a_checkpoint_that_is_cast_inside(pi0_like):
    """In `init` the float32 checkpoint is what it takes."""
    found = pi0_causes(pi0_like, init=True)["jax-cast-inside-jit"]

    assert "bfloat16" in found.title
    assert found.at.startswith("pi0_like.py:")


def test_what_a_scan_casts_and_passes_on_is_not_only_cast():
    """As `nnx.scan` does with the parameters of its layers, which are then updated."""

    def step(layers, x):
        body = jax.checkpoint(lambda x, w: (jnp.tanh(x @ w.astype(jnp.bfloat16)), w))
        grads = jax.grad(lambda layers: jnp.sum(jax.lax.scan(body, x, layers)[0]).astype(jnp.float32))(layers)
        return jax.lax.scan(body, x, layers)[1] - grads

    fact = program(step, matrix(4, 512, 512), matrix(8, 512, dtype=jnp.bfloat16), donate_argnums=0).arguments[0]

    assert fact.cast_to == ""


def test_gradients_over_frozen_parameters(pi0_like):
    """Only a norm reads them."""
    found = pi0_causes(pi0_like, diff_all=True)["jax-frozen-gradients"]

    assert "st['p']['llm']" in found.title


def test_a_frozen_forward_with_a_trained_encoder_before(pi0_like):
    """The encoder would lose its gradient; without it there is nothing to find."""
    found = pi0_causes(pi0_like, train=("exp", "img"))["jax-backward-through-frozen"]

    assert "['img']" in found.fixes[0].text
    assert "frozen_prefix" in found.title
    assert "jax-backward-through-frozen" not in pi0_causes(pi0_like)


def test_a_scan_without_checkpoint(pi0_like):
    """The estimate is that of the program with it, within 10 %."""
    fn, args, donate_argnums = pi0_like.build(
        pi0_like.D | {"variant": "dex", "train": ("exp", "img"), "remat": False, "B": 4}
    )
    without = program(fn, *args, donate_argnums=donate_argnums)
    largest = min(without.with_change(Change.CHECKPOINT_SCAN), key=lambda each: each.peak_bytes)

    assert "jvp(frozen_prefix)" == largest.about[0]
    assert largest.peak_bytes < 0.5 * without.peak_bytes


@pytest.mark.parametrize("prevent_cse", [True, False])
def test_checkpoints_that_xla_merges(prevent_cse):
    """Outside of a loop, prevent_cse=False undoes them; with True they are what keeps the peak low."""

    def block(x, w):
        return jnp.sin(jnp.tanh(jnp.tanh(x @ w) @ w) @ w)

    def loss(params, x):
        for w in params:
            x = jax.checkpoint(block, prevent_cse=prevent_cse)(x, w)
        return x.sum()

    found = causes(sgd(loss), [matrix()] * 6, matrix(8 * N, N), donate_argnums=0)

    assert ("jax-checkpoint-merged" in found) is not prevent_cse
    assert "jax-remat-without-effect" not in found


def test_a_checkpoint_that_saves_everything():
    """Its backward pass computes nothing again."""

    def loss(ws, x):
        body = jax.checkpoint(lambda x, w: (jnp.tanh(x @ w), None), policy=jax.checkpoint_policies.everything_saveable)
        return jax.lax.scan(body, x, ws)[0].sum()

    assert "jax-remat-without-effect" in causes(sgd(loss), matrix(8, N, N), matrix(), donate_argnums=0)


def test_an_array_that_is_closed_over():
    """Found with the line that reads it."""
    table = jnp.zeros((N, N))
    found = causes(lambda x: x @ table, matrix())["jax-baked-constants"]

    assert N * N * 4 == found.bytes
    assert found.at.startswith("test_facts.py:")


def test_moments_of_frozen_parameters():
    """Adam was initialised with all of them, and its update of the frozen ones is thrown away."""
    params = {"head": matrix(), "body": {"w": matrix(4, N, N)}}
    tx = optax.adam(1e-3)
    state = {"params": params, "opt_state": jax.eval_shape(tx.init, params)}

    def step(state, x):
        def loss(head):
            return (x @ state["params"]["body"]["w"][0] @ head).sum()

        grads = {"head": jax.grad(loss)(state["params"]["head"]), "body": {"w": jnp.zeros((4, N, N))}}
        updates, opt_state = tx.update(grads, state["opt_state"])
        head = state["params"]["head"] + updates["head"]
        return {"params": {"head": head, "body": state["params"]["body"]}, "opt_state": opt_state}

    found = causes(step, state, matrix(), donate_argnums=0)["jax-frozen-state"]

    assert 2 * 4 * N * N * 4 == found.bytes
    assert "mu['body']['w']" in found.evidence[1]


def test_a_freeze_filter_that_matches_nothing():
    """This file speaks of it, and all is trained."""
    freeze_filter = "encoder"

    def loss(params, x):
        trainable = {name: w for name, w in params.items() if not name.startswith(freeze_filter)}
        return sum((x @ w).sum() for w in trainable.values())

    found = causes(sgd(loss), {"embed": matrix(), "head": matrix()}, matrix(), donate_argnums=0)

    assert "jax-freeze-filter" in found
    assert any("freeze_filter" in line for line in found["jax-freeze-filter"].evidence)


def test_a_gradient_is_no_next_value_of_its_parameter():
    """It has the shape of it; who donated the parameter for it would lose it."""

    def loss(w, x):
        return jnp.tanh(x @ w).sum()

    assert "jax-state-not-donated" not in causes(jax.grad(loss), matrix(), matrix(8, N))
    assert "jax-state-not-donated" in causes(sgd(loss), matrix(), matrix(8, N))


def test_a_state_that_a_scan_carries_is_one():
    """Several steps in one call."""

    def steps(w, xs):
        return jax.lax.scan(lambda w, x: (w - jax.grad(lambda w: jnp.tanh(x @ w).sum())(w), None), w, xs)[0]

    assert "jax-state-not-donated" in causes(steps, matrix(), matrix(4, 8, N))
