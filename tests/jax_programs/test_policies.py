"""What policies need and cost."""

import pytest

jax = pytest.importorskip("jax")

import jax.numpy as jnp  # noqa: E402

from peaksight.diagnosis.jax_diagnose import examine_program  # noqa: E402
from peaksight.jax import remat_policies  # noqa: E402
from peaksight.jax.facts import program_of  # noqa: E402
from peaksight.jax.flops import flops_of  # noqa: E402
from peaksight.jax.inlining import graph_of  # noqa: E402

N, LAYERS = 256, 8
WEIGHTS = jax.ShapeDtypeStruct((LAYERS, 4, N, N), jnp.float32)
X = jax.ShapeDtypeStruct((8 * N, N), jnp.float32)


def body(x, ws):
    for w in ws:
        x = jnp.tanh(x @ w)
    return x, None


def step_of(body):
    return jax.grad(lambda ws, x: jax.lax.scan(body, x, ws)[0].sum())


def test_what_is_multiplied():
    """A product of n x n matrices is 2 n^3, in a scan once a step."""
    product = jax.make_jaxpr(lambda x, ws: jax.lax.scan(lambda x, w: (x @ w[0], None), x, ws)[0])(X, WEIGHTS)

    assert LAYERS * 2 * 8 * N * N * N == flops_of(graph_of(product))


@pytest.mark.parametrize("block", [body, jax.checkpoint(body, policy=jax.checkpoint_policies.everything_saveable)])
def test_policies_trade_memory_for_arithmetic(block):
    """Around a scan without a checkpoint, and in place of the policy of one."""
    seen = {each.policy: each for each in remat_policies(step_of(block), WEIGHTS, X)}
    nothing, everything = seen["nothing_saveable"], seen["everything_saveable"]

    assert nothing.peak_bytes < 0.6 * everything.peak_bytes
    assert everything.flops < nothing.flops <= 4 * everything.flops / 3
    assert seen["as written"].flops == everything.flops


def test_without_a_checkpoint_or_a_scan_there_is_no_choice():
    """Only the function as it is."""
    (only,) = remat_policies(jax.grad(lambda ws, x: body(x, ws[0])[0].sum()), WEIGHTS, X)

    assert "as written" == only.policy


def test_tracing_is_afterwards_as_before():
    """Nothing of the search stays."""
    before = str(jax.make_jaxpr(step_of(body))(WEIGHTS, X))
    remat_policies(step_of(body), WEIGHTS, X)

    assert before == str(jax.make_jaxpr(step_of(body))(WEIGHTS, X))


def test_the_finding_lists_them():
    """With what each needs and costs."""
    closed = jax.jit(step_of(body)).trace(WEIGHTS, X).jaxpr
    findings, _ = examine_program(program_of(closed, policies=remat_policies(step_of(body), WEIGHTS, X)))
    found = next(finding for finding in findings if finding.rule == "jax-remat-policy")

    assert "nothing_saveable" in found.title
    assert "more arithmetic" in found.fixes[-1].text
