"""`peaksight run` on scripts as people publish them."""

import numpy as np
import pytest

from helpers_jax import report_of

jax = pytest.importorskip("jax")

import peaksight.jax  # noqa: E402

MIB = 1 << 20


def test_a_copy_for_each_card_is_the_array_on_the_first(tmp_path):
    """As in JAX: it takes no memory there beside the array that it is a copy of, and goes with it when donated."""
    printed, report = report_of(
        tmp_path,
        "from jax.sharding import Mesh, NamedSharding, PartitionSpec as P",
        "mesh = Mesh(np.array(jax.devices()), ('data',))",
        "w = jax.random.normal(jax.random.key(0), (1024, 1024))",
        "everywhere = jax.device_put(w, NamedSharding(mesh, P()))",
        "step = jax.jit(lambda w: w - jax.grad(lambda w: jnp.sum(w ** 2))(w), donate_argnums=0)",
        "new = step(everywhere)",
        "print(new.sharding.spec, w.is_deleted())",
        options=("--gpus", 2),
    )

    assert "() True" in printed
    assert 4 * MIB <= report["peak"]["allocated_bytes"] < 5 * MIB


def test_the_compiler_is_named_where_the_peak_is_outside_of_jit(tmp_path):
    """Whose plans the report holds does not depend on when the peak is."""
    _, report = report_of(
        tmp_path,
        "x = jnp.ones((4096, 1024))",
        "del x",
        "jax.jit(lambda w: jax.grad(lambda w: jnp.sum(w ** 2))(w))(jnp.ones(1024))",
    )

    assert 16 * MIB <= report["peak"]["allocated_bytes"]
    assert "no jitted function" not in report["torch"]


ORBAX = (
    "import orbax.checkpoint as ocp",
    "state = {'w': jnp.ones((512, 512)), 'moments': [jnp.zeros((512, 512)), None], 'epoch': 3}",
)


def test_orbax_restores_what_the_run_saved(tmp_path):
    """Without shapes too, as nested dictionaries, by step and by path; the latest step is the last that was saved."""
    pytest.importorskip("orbax.checkpoint")
    printed, _ = report_of(
        tmp_path,
        *ORBAX,
        f"with ocp.CheckpointManager({str(tmp_path / 'run')!r}) as manager:",
        "    manager.save(4, args=ocp.args.StandardSave(state))",
        "    manager.save(7, args=ocp.args.Composite(state=ocp.args.StandardSave(state)))",
        "    print('latest', manager.latest_step(), manager.restore(7).state['moments'][0].shape)",
        "    print('step', manager.restore(4)['w'].shape, manager.restore(4)['epoch'])",
        f"ocp.StandardCheckpointer().save({str(tmp_path / 'one')!r}, state)",
        f"print('path', ocp.StandardCheckpointer().restore({str(tmp_path / 'one')!r})['w'].shape)",
        options=("--steps", 0),
    )

    assert "latest 7 (512, 512)" in printed
    assert "step (512, 512) 3" in printed
    assert "path (512, 512)" in printed
    assert not (tmp_path / "run" / "7").exists()


def test_orbax_restores_what_is_on_the_disk(tmp_path):
    """The shapes of a checkpoint of another run are read, and none of its numbers."""
    ocp = pytest.importorskip("orbax.checkpoint")
    with ocp.StandardCheckpointer() as checkpointer:
        checkpointer.save(tmp_path / "one", {"w": np.ones((512, 512), np.float32)})
    with ocp.CheckpointManager(tmp_path / "run") as manager:
        manager.save(1, args=ocp.args.StandardSave({"w": np.ones((256, 512), np.float32)}))
    printed, report = report_of(
        tmp_path,
        *ORBAX[:1],
        f"one = ocp.StandardCheckpointer().restore({str(tmp_path / 'one')!r})",
        f"run = ocp.CheckpointManager({str(tmp_path / 'run')!r}).restore(1)",
        "print('found', one['w'].shape, run['w'].shape)",
        options=("--steps", 0),
    )

    assert "found (512, 512) (256, 512)" in printed
    assert 1.5 * MIB == report["peak"]["allocated_bytes"]


def test_what_was_compiled_ahead_of_time_runs_on_the_card(tmp_path):
    """It is called as the function is, and its memory analysis is that of the card, at no second compile."""
    printed, report = report_of(
        tmp_path,
        "def step(w, x):",
        "    return w - jax.grad(lambda w: jnp.mean((x @ w) ** 2))(w)",
        "w, x = jnp.ones((1024, 1024)), np.ones((64, 1024), np.float32)",
        "compiled = jax.jit(step, donate_argnums=0).lower(w, x).compile()",
        "stats = compiled.memory_analysis()",
        "print('planned', stats.argument_size_in_bytes, stats.alias_size_in_bytes)",
        "for _ in range(2):",
        "    w = compiled(w, x)",
        "print(type(w).__name__, isinstance(compiled, jax.stages.Compiled), compiled.cost_analysis()['flops'] > 0)",
        "try:",
        "    compiled(w)",
        "except TypeError as error:",
        "    print(error)",
    )

    assert f"planned {4 * MIB + 64 * 1024 * 4} {4 * MIB}" in printed
    assert "VirtualArray True True" in printed
    assert "Function compiled with input pytree does not match" in printed
    assert [2] == [each["num_calls"] for each in report["programs"]]


def test_equinox_arguments_have_their_paths(tmp_path):
    """Of the model, of the optimizer, by position and by name; and what is on the disk is put back."""
    pytest.importorskip("equinox")
    printed, report = report_of(
        tmp_path,
        "import equinox as eqx, optax",
        "model = eqx.nn.MLP(512, 10, 1024, 1, key=jax.random.key(0))",
        "tx = optax.adam(1e-3)",
        "state = tx.init(eqx.filter(model, eqx.is_array))",
        "@eqx.filter_jit",
        "def step(model, state, x, *, mean):",
        "    grads = eqx.filter_grad(lambda model: jnp.sum((jax.vmap(model)(x) - mean) ** 2))(model)",
        "    updates, state = tx.update(grads, state)",
        "    return eqx.apply_updates(model, updates), state",
        "for _ in range(2):",
        "    model, state = step(model, state, np.ones((64, 512), np.float32), mean=jnp.ones((1024, 10))[:64])",
        "eqx.tree_serialise_leaves('model.eqx', model)",
        "model = eqx.tree_deserialise_leaves('model.eqx', model)",
        "print('back', model.layers[0].weight.shape, model.layers[1].bias.shape)",
    )
    donated = next(each for each in report["findings"] if each["rule"] == "jax-state-not-donated")

    assert "back (1024, 512) (10,)" in printed
    assert "model.layers[0].weight" in donated["evidence"][1]
    assert "donate_argnums for `model`, `state`;" in donated["fixes"][0]["text"]


def test_an_update_apart_from_the_gradients_is_the_optimizers_step(tmp_path):
    """What the first function returns are gradients, and the second is no evaluation."""
    _, report = report_of(
        tmp_path,
        "grads_of = jax.jit(jax.value_and_grad(lambda params, x: jnp.mean((x @ params['w']) ** 2)))",
        "update = jax.jit(lambda params, given: jax.tree.map(lambda a, b: a - b, params, given))",
        "evaluate = jax.jit(lambda params, x: jnp.mean((x @ params['w']) ** 2))",
        "params, x = {'w': jnp.ones((1024, 1024))}, np.ones((64, 1024), np.float32)",
        "for _ in range(2):",
        "    loss, found = grads_of(params, x)",
        "    params = update(params, found)",
        "evaluate(params, x)",
    )
    gradients = [row["bytes"] for row in report["live_at_peak"] if row["category"] == "gradient"]

    assert ["forward", "optimizer", "evaluation"] == [each["phase"] for each in report["programs"]]
    assert sum(gradients) >= 4 * MIB


NNX = (
    "from flax import nnx",
    "class Net(nnx.Module):",
    "    def __init__(self, rngs):",
    "        self.blocks = nnx.List([nnx.Linear(512, 512, rngs=rngs) for _ in range(2)])",
    "    def __call__(self, x):",
    "        for block in self.blocks:",
    "            x = jnp.sin(block(x))",
    "        return x",
    "def train(model, x):",
    "    loss, grads = nnx.value_and_grad(lambda model: jnp.mean(model(x) ** 2))(model)",
    "    nnx.update(model, jax.tree.map(lambda a, b: a - b, nnx.state(model), grads))",
    "    return loss",
)


def test_what_modules_of_nnx_compute_is_in_their_path(tmp_path):
    """As the modules of Linen have it by themselves."""
    pytest.importorskip("flax")
    _, report = report_of(
        tmp_path, *NNX, "nnx.jit(train, donate_argnums=0)(Net(nnx.Rngs(0)), np.ones((4096, 512), np.float32))"
    )
    computed = {row["module"] for row in report["live_at_peak"] if row["category"] == "activation"}

    assert "Net.blocks[0]" in computed and "Net" in computed


def test_what_modules_of_equinox_compute_is_in_their_path(tmp_path):
    """In place of the kind of layer alone."""
    pytest.importorskip("equinox")
    _, report = report_of(
        tmp_path,
        "import equinox as eqx",
        "class Net(eqx.Module):",
        "    layers: list",
        "    def __call__(self, x):",
        "        return self.layers[1](jnp.sin(self.layers[0](x)))",
        "net = Net([eqx.nn.Linear(512, 512, key=jax.random.key(n)) for n in range(2)])",
        "step = eqx.filter_jit(eqx.filter_grad(lambda net, x: jnp.sum(jnp.sin(jax.vmap(net)(x)))))",
        "step(net, np.ones((4096, 512), np.float32))",
    )
    computed = {row["module"] for row in report["live_at_peak"] if row["category"] in ("activation", "temporary")}

    assert {"Net.layers[0]", "Net.layers[1]"} & computed, computed


def test_predict_takes_what_nnx_and_equinox_jit():
    """With the paths of their state, though flax was imported before."""
    nnx, eqx = pytest.importorskip("flax.nnx"), pytest.importorskip("equinox")
    optax = pytest.importorskip("optax")
    x = jax.numpy.ones((64, 512))

    @nnx.jit
    def step(model, optimizer, x):
        loss, grads = nnx.value_and_grad(lambda model: jax.numpy.mean(model(x) ** 2))(model)
        optimizer.update(model, grads)
        return loss

    model = nnx.Linear(512, 512, rngs=nnx.Rngs(0))
    of_nnx = peaksight.jax.predict(step, model, nnx.Optimizer(model, optax.adam(1e-3), wrt=nnx.Param), x)
    layer = eqx.nn.Linear(512, 512, key=jax.random.key(0))
    gradient = eqx.filter_jit(eqx.filter_grad(lambda layer, x: jax.numpy.sum(jax.vmap(layer)(x) ** 2)))
    of_equinox = peaksight.jax.predict(gradient, layer, x)

    assert {"model.kernel", "optimizer.opt_state[0].mu.kernel"} <= {row.module for row in of_nnx.live_at_peak}
    assert not [row.module for row in of_nnx.live_at_peak if row.category == "other" and row.bytes >= MIB]
    assert "layer.weight" in {row.module for row in of_equinox.live_at_peak}
