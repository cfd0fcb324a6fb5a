"""What the changes of a plan make of a call, and of how functions are traced."""

import numpy as np
import pytest

jax = pytest.importorskip("jax")

import jax.numpy as jnp  # noqa: E402
from jax.sharding import PartitionSpec as P  # noqa: E402

from peaksight.errors import PlanError  # noqa: E402
from peaksight.jax.changes import Changes  # noqa: E402
from peaksight.jax.edits import CastBefore, Donate, KeepApart, Spread  # noqa: E402
from peaksight.jax.facts import program_of  # noqa: E402
from peaksight.jax.liveness import liveness  # noqa: E402
from peaksight.jax.policies import around_losses  # noqa: E402
from peaksight.jax.tracing import call_of, paths_of  # noqa: E402
from peaksight.records.plan import Change  # noqa: E402

N = 256
WEIGHTS = jax.ShapeDtypeStruct((N, N), jnp.float32)
X = jax.ShapeDtypeStruct((8 * N, N), jnp.float32)
STATE = {"trained": WEIGHTS, "frozen": WEIGHTS}


def step(state, x):
    def loss(trained):
        return jnp.sum((x.astype(jnp.bfloat16) @ state["frozen"].astype(jnp.bfloat16) @ trained) ** 2)

    return {"trained": state["trained"] - jax.grad(loss)(state["trained"]), "frozen": state["frozen"]}


def call(fn=step, *args):
    args = args or (STATE, X)
    return call_of(jax.jit(fn).trace(*args), args)


def test_donation_is_of_whole_arguments_of_one_function():
    """Every leaf of the state, none of the batch, and nothing of another function."""
    donated = Donate("step", ("state",))(call()).donated

    assert (True, True, False) == donated
    assert (False, False, False) == Donate("another", ("state",))(call()).donated


def test_a_cast_before_the_call():
    """What is read through a cast alone comes and goes in half the bytes; the rest and the names stay."""
    before = call()
    after = CastBefore("step")(before)
    paths = paths_of(after.closed)

    assert paths_of(before.closed) == paths
    types = dict(zip(paths, (aval.dtype for aval in after.closed.in_avals), strict=True))
    assert jnp.bfloat16 == types["state['frozen']"]
    assert jnp.float32 == types["state['trained']"]
    assert [jnp.bfloat16, jnp.float32] == [aval.dtype for aval in after.closed.out_avals]


def test_a_cast_before_the_call_changes_no_number():
    """The function with it gives the same bits for what was cast."""
    draw = np.random.default_rng(0)
    args = [draw.standard_normal(aval.shape, np.float32) for aval in call().closed.in_avals]
    before = jax.jit(jax.extend.core.jaxpr_as_fun(call().closed))(*args)
    edited = CastBefore("step")(call()).closed
    given = [arg.astype(aval.dtype) for arg, aval in zip(args, edited.in_avals, strict=True)]

    after = jax.jit(jax.extend.core.jaxpr_as_fun(edited))(*given)

    assert np.array_equal(before[1], after[1])
    assert np.array_equal(before[0].astype(jnp.bfloat16), after[0])


def blocks(prevent_cse):
    def block(x, w):
        return jnp.tanh(jnp.tanh(x @ w) @ w)

    def loss(ws, x):
        for w in ws:
            x = jax.checkpoint(block, prevent_cse=prevent_cse)(x, w)
        return x.sum()

    return jax.grad(loss)


def test_checkpoints_kept_apart():
    """As if `prevent_cse` had its default, and the original stays as it was."""
    args = ((WEIGHTS,) * 4, X)
    merged, kept = (call_of(jax.jit(blocks(flag)).trace(*args), args) for flag in (False, True))
    edited = KeepApart(merged.name)(merged)

    assert not any(each.prevents_cse for each in program_of(merged.closed).remats)
    assert all(each.prevents_cse for each in program_of(edited.closed).remats)
    assert liveness(kept.closed).peak_bytes == liveness(edited.closed).peak_bytes < liveness(merged.closed).peak_bytes
    assert kept.closed is not edited.closed
    assert KeepApart(kept.name)(kept) is kept


def test_a_batch_and_a_state_over_two_devices():
    """The batch by its first axis; the state by its longest, on its way out too."""
    state = {"w": jax.ShapeDtypeStruct((N, 3 * N), jnp.float32), "step": jax.ShapeDtypeStruct((), jnp.int32)}

    def two_results(state, x):
        return {"w": state["w"] * 2, "step": state["step"] + 1}, (x @ state["w"]).sum()

    made = call(two_results, state, X)
    both, batch = (Spread(2, state=flag)(made) for flag in (True, False))

    assert [P(), P(None, "cards"), P("cards")] == [each.spec for each in both.shardings]
    assert [P(), P(None, "cards")] == [each.spec for each in both.out_shardings[:2]]
    assert both.out_shardings[2] is None
    assert [P(), P(), P("cards")] == [each.spec for each in batch.shardings]


def test_a_program_that_has_a_mesh_stays_as_it_is():
    """What the person laid out is not laid out again."""
    mesh = jax.make_mesh((2,), ("mine",))
    x = jax.ShapeDtypeStruct(X.shape, X.dtype, sharding=jax.sharding.NamedSharding(mesh, P("mine")))
    made = call(lambda x: x * 2, x)

    assert Spread(2, state=True)(made) is made


def test_a_checkpoint_around_the_loss():
    """What lies between products is not saved, other arguments may be anything, and afterwards all is as before."""

    def loss(name, ws, x):
        for w in ws:
            x = jnp.sin(jnp.tanh(jnp.exp(x @ w)))
        return x.sum() if name == "sum" else x.mean()

    def step(ws, x):
        return jax.grad(loss, argnums=1)("sum", ws, x)

    args, heard = ((WEIGHTS,) * 6, X), []
    before = str(jax.make_jaxpr(step)(*args))
    with around_losses(jax.checkpoint_policies.dots_saveable, lambda: heard.append(1)):
        under = program_of(jax.jit(lambda *args: step(*args)).trace(*args).jaxpr)

    (remat,) = under.remats
    assert remat.recomputes and remat.prevents_cse and not remat.in_loop
    assert [1] == heard
    assert before == str(jax.make_jaxpr(step)(*args))


@pytest.mark.parametrize("kind, parameters", [("checkpoint-modules", {}), ("jax-donate", {"arguments": ["state"]})])
def test_changes_that_there_are_not(kind, parameters):
    """A plan for torch, or of another release."""
    with pytest.raises(PlanError, match="Make the plan again"):
        Changes([Change(kind=kind, parameters=parameters)])


def test_a_change_that_finds_nothing_to_change_is_told():
    """And one that does is not; the same function is edited once."""
    donate = Change(kind="jax-donate", parameters={"program": "step", "arguments": ["state"]})
    apart = Change(kind="jax-prevent-cse", parameters={"program": "step"})
    changes, made = Changes([donate, apart]), call()

    assert changes.edited(made) is changes.edited(made)
    assert ("jax-prevent-cse",) == changes.without_effect()
