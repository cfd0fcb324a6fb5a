"""Two functions that train the same model, or do not."""

import io

import pytest

jax = pytest.importorskip("jax")
optax = pytest.importorskip("optax")

import jax.numpy as jnp  # noqa: E402
from rich.console import Console  # noqa: E402

from peaksight.errors import UnsupportedError  # noqa: E402
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
    assert seen.loss is not None
    assert "grads" in seen.worst.name or "params" in seen.worst.name


def test_half_precision_is_noise():
    """Products in bfloat16 round thousands of times worse, and compute the same in float64."""

    def half(x, w):
        return jnp.tanh((x.astype(jnp.bfloat16) @ w.astype(jnp.bfloat16)).astype(jnp.float32))

    seen = verify_functions(step(block), step(half), STATE, BATCH)

    assert ("noise", "coarser rounding", False) == (seen.verdict, seen.noise, seen.same)


def test_a_leaf_that_is_not_trained():
    """Found by its value after the update, and named."""

    def frozen(state, x):
        after, seen = step(block)(state, x)
        return {**after, "params": [after["params"][0], state["params"][1]]}, seen

    seen = verify_functions(step(block), frozen, STATE, BATCH)

    assert "different" == seen.verdict
    assert "leaves of the state that change (params.1.w) in step 1: 7 of 7 in the original, 6" in seen.reasons[-1]


def dropping(key, rate=0.5, again=None):
    """A step whose loss has a dropout between two products, drawn again by `again` in the backward pass if given."""

    @jax.custom_vjp
    def drop(x):
        return drawn(key, x)

    def drawn(key, x):
        return jnp.where(jax.random.bernoulli(key, 1 - rate, x.shape), x / (1 - rate), 0)

    drop.defvjp(lambda x: (drop(x), None), lambda _, grad: (drawn(key if again is None else again, grad),))

    def one(params, x):
        def loss(params):
            return jnp.mean((drop(jnp.tanh(x @ params[0]["w"])) @ params[1]["w"] - 1) ** 2)

        value, grads = jax.value_and_grad(loss)(params)
        return jax.tree.map(lambda w, g: w - g, params, grads), {"loss": value, "grads": grads}

    return one


KEYS = [jax.random.key(seed) for seed in range(2)]


def test_another_key_is_noise():
    """With the same bits from every key both compute the same."""
    seen = verify_functions(dropping(KEYS[0]), dropping(KEYS[1]), PARAMS, BATCH)

    assert ("noise", "other random numbers", False) == (seen.verdict, seen.noise, seen.same)


@pytest.mark.parametrize(
    "changed",
    [dropping(KEYS[0], rate=0.4), dropping(KEYS[0], again=KEYS[1])],
    ids=["another rate", "another mask in the backward pass"],
)
def test_masks_that_are_no_noise(changed):
    """More is dropped, or a gradient is that of no loss."""
    seen = verify_functions(dropping(KEYS[0]), changed, PARAMS, BATCH)

    assert "different" == seen.verdict
    assert any("with the same random numbers" in reason for reason in seen.reasons)


def test_the_key_of_the_next_step():
    """The same arrays, and other random numbers later on."""
    seen = verify_functions(lambda key: jax.random.split(key)[0], lambda key: jax.random.split(key)[1], KEYS[0])

    assert ("noise", "later random numbers") == (seen.verdict, seen.noise)


def test_the_smallest_error_that_is_caught():
    """A bit where both are the same; what rounding explains where they are not, far below what was found."""
    same = verify_functions(step(block), step(block), STATE, BATCH)
    rounded = verify_functions(step(block), step(other_order), STATE, BATCH)

    assert 0 < same.smallest_caught < 1e-7 < rounded.smallest_caught < 1e-4
    assert all(each.smallest_caught for each in rounded.blocks)


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


def test_what_is_no_number_is_the_same_in_every_call():
    """Functions and flags in a state, as modules of Equinox have them; both steps run."""

    def written(model, x):
        assert model["trains"] is True
        grad = jax.grad(lambda w: jnp.mean(model["activation"](x @ w) ** 2))(model["w"])
        return model | {"w": model["w"] - 0.1 * grad}

    def changed(model, x):
        return jax.checkpoint(lambda w: written(model | {"w": w}, x)["w"])(model["w"])

    model = {"w": SHAPE((32, 32), jnp.float32), "activation": jnp.tanh, "trains": True}
    same = verify_functions(written, lambda model, x: model | {"w": changed(model, x)}, model, BATCH)
    other = verify_functions(written, lambda model, x: written(model | {"activation": jnp.sin}, x), model, BATCH)

    assert (same.same, same.steps, other.verdict) == (True, 2, "different")


@jax.tree_util.register_pytree_node_class
class Box:
    """A state that is changed in place."""

    def __init__(self, value):
        self.value = value

    def tree_flatten(self):
        return (self.value,), None

    @classmethod
    def tree_unflatten(cls, _, children):
        return cls(*children)


def test_what_is_changed_in_place_counts():
    """The state, though only the loss is returned; for two steps."""

    def step(rate):
        def train(box, x):
            value, grad = jax.value_and_grad(lambda w: jnp.mean((x @ w) ** 2))(box.value)
            box.value = box.value - rate * grad
            return value

        return train

    state = Box(SHAPE((32, 32), jnp.float32))
    same = verify_functions(step(0.1), step(0.1), state, BATCH)

    assert (same.verdict, same.steps) == ("bitwise", 2)
    assert verify_functions(step(0.1), step(0.2), state, BATCH).verdict == "different"


def test_what_cannot_be_traced():
    """In one sentence that names the function."""

    def branches(w, x):
        return w if (x @ w).sum() > 0 else x

    with pytest.raises(UnsupportedError, match=r"^Can't trace branches: Attempted boolean conversion.*static_argnums"):
        verify_functions(lambda w, x: x @ w, branches, PARAMS[0]["w"], BATCH)


def test_modules_of_equinox():
    """Jitted by `filter_jit`, with a checkpoint and with other learning rates."""
    eqx = pytest.importorskip("equinox")
    model = eqx.nn.MLP(32, 32, 64, 2, key=jax.random.key(0))

    def step(rate, wrap):
        def train(model, x):
            grads = eqx.filter_grad(wrap(lambda model, x: jnp.mean(jax.vmap(model)(x) ** 2)))(model, x)
            return eqx.apply_updates(model, jax.tree.map(lambda grad: -rate * grad, grads))

        return eqx.filter_jit(train)

    written = step(0.1, lambda loss: loss)
    assert verify_functions(written, step(0.1, eqx.filter_checkpoint), model, BATCH).same
    assert verify_functions(written, step(0.2, lambda loss: loss), model, BATCH).verdict == "different"
