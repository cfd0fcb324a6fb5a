"""The peak of small programs, counted by hand."""

import pytest

jax = pytest.importorskip("jax")

import jax.numpy as jnp  # noqa: E402

from peaksight.jax.fusion import ELEMENTWISE, MOVES, REDUCTIONS  # noqa: E402
from peaksight.jax.inlining import graph_of  # noqa: E402
from peaksight.jax.liveness import liveness  # noqa: E402
from peaksight.records.jax_program import Kind  # noqa: E402

N = 256
MATRIX = jax.ShapeDtypeStruct((N, N), jnp.float32)
BYTES = N * N * 4


def peak_of(fn, *args, **options):
    traced = jax.jit(fn, **options).trace(*args)
    donated = [info.donated for info in jax.tree.leaves(traced.args_info)]
    return liveness(traced.jaxpr, donated=donated)


def test_products_are_held_from_their_birth_to_their_last_reading():
    """The first product is there while the second is made, and not while the third is."""
    seen = peak_of(lambda a: (a @ a) @ a @ a, MATRIX)

    assert 3 * BYTES == seen.peak_bytes
    assert BYTES == seen.argument_bytes == seen.output_bytes


def test_what_is_computed_element_by_element_is_not_held():
    """A chain of it is one kernel that reads its argument and writes its result."""
    seen = peak_of(lambda a: jnp.tanh(a * 2 + 1) ** 2, MATRIX)

    assert 2 * BYTES == seen.peak_bytes


def test_donated_arguments_hold_the_outputs_of_their_shape():
    """Adding in place takes no memory."""
    seen = peak_of(lambda a, b: a + b, MATRIX, MATRIX, donate_argnums=0)

    assert 2 * BYTES == seen.peak_bytes
    assert BYTES == seen.aliased_bytes


def test_an_argument_returned_as_it_came_is_copied():
    """XLA does not forward its inputs: what is not donated is copied into an output."""
    fn = lambda state, x: (state, x * 2)  # noqa: E731

    assert 4 * BYTES == peak_of(fn, MATRIX, MATRIX).peak_bytes
    assert 2 * BYTES == peak_of(fn, MATRIX, MATRIX, donate_argnums=(0, 1)).peak_bytes


def test_a_value_returned_twice_takes_two_buffers():
    """Outputs never share memory."""
    assert 3 * BYTES == peak_of(lambda a: (2 * a, 2 * a), MATRIX).peak_bytes


def test_a_donated_argument_of_another_type_is_copied_first_where_it_is_still_read():
    """XLA pairs by size: what is written there must not be what is still to be read."""
    half = jax.ShapeDtypeStruct((2 * N, N), jnp.float32)

    def cast(large, small):
        return large.astype(jnp.bfloat16), small.astype(jnp.bfloat16)

    seen = peak_of(cast, half, MATRIX, donate_argnums=(0, 1))

    assert BYTES == seen.aliased_bytes
    assert 2 * BYTES + BYTES + BYTES + BYTES // 2 == seen.peak_bytes


def test_a_loop_holds_what_it_stacks_for_its_backward():
    """Ten layers save their inputs; the carry is written in place."""
    weights = jax.ShapeDtypeStruct((10, N, N), jnp.float32)

    def loss(w, x):
        y, _ = jax.lax.scan(lambda x, w: (jnp.tanh(x @ w), None), x, w)
        return (y * y).sum()

    seen = peak_of(jax.grad(loss), weights, MATRIX)
    stacks = [value for value in seen.live if value.kind is Kind.TEMPORARY and value.bytes == 10 * BYTES]

    assert stacks
    assert all(value.source.startswith("test_liveness.py:") for value in stacks)


def test_arguments_have_their_paths_and_values_their_lines():
    """As the traced function knows them."""
    state = {"params": {"w": MATRIX}}
    seen = peak_of(lambda state, x: state["params"]["w"] @ x @ x, state, MATRIX)

    assert ["state['params']['w']", "x"] == [value.argument for value in seen.live if value.kind is Kind.ARGUMENT]
    assert all(value.source for value in seen.live if value.kind is not Kind.ARGUMENT)


def test_constants_are_part_of_the_program():
    """An array that the function closes over is in the executable."""
    table = jnp.zeros((N, N))
    seen = peak_of(lambda a: a @ table, MATRIX)

    assert BYTES == seen.constant_bytes
    assert 3 * BYTES == seen.peak_bytes


@pytest.mark.parametrize("prevent_cse", [True, False])
def test_recomputing_outside_of_a_loop_needs_prevent_cse(prevent_cse):
    """Without it XLA merges what is recomputed with what it repeats, and nothing is saved."""

    def block(x, ws):
        for w in ws:
            x = jnp.tanh(x @ w)
        return x

    def loss(weights, x):
        for ws in weights:
            x = jax.checkpoint(block, prevent_cse=prevent_cse)(x, ws)
        return (x * x).sum()

    weights = [[MATRIX] * 3] * 4
    seen = peak_of(jax.grad(loss, argnums=1), weights, MATRIX)
    num_beside = (seen.peak_bytes - seen.argument_bytes - seen.output_bytes) / BYTES

    assert (num_beside < 9) is prevent_cse


def test_a_scatter_into_zeros_that_are_added_is_one_into_the_summand():
    """The gradient of a cross-entropy: that of its pick is added into that of its softmax."""
    logits, labels = jax.ShapeDtypeStruct((N, 8 * N), jnp.float32), jax.ShapeDtypeStruct((N, 1), jnp.int32)

    def loss(w, x, labels):
        values = x @ w
        picked = jnp.take_along_axis(values, labels, axis=1)
        return (jax.nn.logsumexp(values, axis=1) - picked[:, 0]).sum()

    seen = peak_of(jax.grad(loss, argnums=1), logits, MATRIX, labels)

    assert 2 * 8 * BYTES <= seen.temporary_bytes < 2.5 * 8 * BYTES


def test_a_shard_map_has_a_part_on_each_device():
    """Of what is split over the mesh; what is not split is whole on each."""
    mesh = jax.sharding.AbstractMesh((4,), ("data",), axis_types=(jax.sharding.AxisType.Auto,))
    spec = jax.sharding.PartitionSpec
    rows = jax.ShapeDtypeStruct((4 * N, N), jnp.float32)
    fn = jax.shard_map(lambda x, w: x @ w, mesh=mesh, in_specs=(spec("data"), spec()), out_specs=spec("data"))
    seen = peak_of(fn, rows, MATRIX)

    assert (2 * BYTES, BYTES) == (seen.argument_bytes, seen.output_bytes)


@pytest.mark.parametrize(("is_small", "num_bytes"), [(False, 3 * BYTES), (True, 3 * BYTES + N * 4)])
def test_a_temporary_is_in_an_output_to_come_if_it_fits(is_small, num_bytes):
    """Three of them are alive at once: one is in the product that is returned, and none in a row of it."""

    def twice(x, w):
        a, b = jnp.tanh(x @ w), jnp.tanh(w @ x)
        return (a @ b).sum(0) if is_small else a @ b

    seen = peak_of(twice, MATRIX, MATRIX)

    assert num_bytes == seen.peak_bytes - seen.argument_bytes


def test_every_elementwise_primitive_is_known():
    """What a release of JAX adds is computed where it is read, as the rest is."""
    of_one = (jnp.tanh, jax.nn.gelu, jax.nn.silu, jax.nn.softplus, jnp.log2, jnp.cbrt, jnp.sign, jax.nn.relu6)
    names = set()
    for function in of_one:
        graph = graph_of(jax.jit(jax.grad(lambda x, function=function: function(x).sum())).trace(jnp.ones(8)).jaxpr)
        names |= {node.name for node in graph.nodes}

    assert names <= ELEMENTWISE | MOVES | REDUCTIONS
