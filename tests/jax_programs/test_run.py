"""`peaksight run` on scripts under JAX."""

import json
from pathlib import Path

import pytest

from helpers_jax import run, written

pytest.importorskip("jax")
pytest.importorskip("optax")

TRAIN = Path(__file__).with_name("train.py")
WIDTH = 1024


@pytest.fixture(scope="module")
def done(tmp_path_factory):
    """One run, and its report."""
    file = tmp_path_factory.mktemp("jax") / "report.json"
    done = run(TRAIN, WIDTH, json_file=file)
    return done, json.loads(file.read_text())


def test_the_script_runs_to_its_end(done):
    """Losses are stand-ins, and the step counter is right."""
    process, report = done

    assert process.returncode == 0, process.stderr
    assert "loss 1.000 at step 3" in process.stdout
    assert "evaluation 1.0" in process.stdout
    assert report["fits"] is True
    assert "jax-values" in {unknown["slug"] for unknown in report["not_simulated"]}


def test_what_is_alive_adds_up(done):
    """The state has its categories, and its bytes."""
    _, report = done
    held = {}
    for row in report["live_at_peak"]:
        held[row["category"]] = held.get(row["category"], 0) + row["bytes"]
    parameters = 2 * 4 * WIDTH * WIDTH * 4

    assert sum(held.values()) == report["peak"]["allocated_bytes"]
    assert held["parameter"] == parameters
    assert 2 * parameters <= held["optimizer_state"] < 2.01 * parameters
    assert len(report["steps"]) == 3


def test_the_course_and_the_card_add_up(done):
    """The peak of each step is in the course; what the pool leaves of the card is withheld, the rest of it not free."""
    _, report = done
    course, budget = report["course"], report["budget"]
    totals = [sum(column["bytes"][at] for column in course["held"]) for at in range(len(course["ticks"]))]
    card = {part["part"]: part["bytes"] for part in budget["parts"]}

    assert totals == course["allocated_bytes"]
    assert totals[course["ticks"].index(course["peak_tick"])] == report["peak"]["allocated_bytes"]
    assert {step["peak_allocated_bytes"] for step in report["steps"]} <= set(totals)
    assert [sum(each["bytes"] for each in step["held"]) for step in report["steps"]] == [
        step["peak_allocated_bytes"] for step in report["steps"]
    ]
    assert sum(card.values()) == budget["total_bytes"]
    assert {"unallocated", "context", "withheld"} <= set(card) and "free" not in card


def test_every_jitted_function_is_named(done):
    """Each with its calls and the phase of its first."""
    _, report = done

    assert [(each["name"], each["num_calls"], each["phase"]) for each in report["programs"]] == [
        ("init", 1, "init"),
        ("train_step", 3, "forward"),
        ("evaluate", 1, "evaluation"),
    ]


def test_a_script_that_fails_has_its_own_traceback():
    """Without our frames, and with its code."""
    process = run(TRAIN, "256", "--fail")

    assert process.returncode == 2
    assert "ValueError: as asked" in process.stderr
    assert "peaksight/jax" not in process.stderr


def test_enough_steps_are_no_failure(tmp_path):
    """The script is left after as many as were asked for, and what it does later is not done."""
    process = run("--steps", "2", TRAIN, "256", json_file=tmp_path / "report.json")
    report = json.loads((tmp_path / "report.json").read_text())

    assert process.returncode == 0, process.stderr
    assert ("steps", 2) == (report["finished"], len(report["steps"]))
    assert "evaluation" not in process.stdout


def test_what_the_pool_does_not_have(tmp_path):
    """A larger model does not fit the pool of a T4, and the report says what it asked for."""
    file = tmp_path / "report.json"
    process = run(TRAIN, "12288", json_file=file)
    report = json.loads(file.read_text())

    assert process.returncode == 1, process.stderr
    assert report["fits"] is False
    assert report["oom"]["message"].startswith("RESOURCE_EXHAUSTED")
    assert report["peak"]["allocated_bytes"] > report["gpu"]["usable_bytes"]


def test_callbacks_and_a_step_without_activations(tmp_path):
    """What calls back to Python is compiled as on the card, and never called; the function is a step."""
    script = written(
        tmp_path,
        "@jax.jit",
        "def step(w, x):",
        "    def loss(w):",
        "        jax.debug.print('never {}', w[0, 0])",
        "        return jnp.mean((x @ w) ** 2)",
        "    seen = jax.pure_callback(np.sum, jax.ShapeDtypeStruct((), jnp.float32), w[0, 0])",
        "    value, grad = jax.value_and_grad(loss)(w)",
        "    return w - grad, value + seen",
        "print(step(jnp.ones((512, 512)), jnp.ones((64, 512)))[1])",
    )
    process = run(script, json_file=tmp_path / "report.json")

    assert process.returncode == 0, process.stderr
    assert "never" not in process.stdout
    assert len(json.loads((tmp_path / "report.json").read_text())["steps"]) == 1


@pytest.mark.parametrize("axis_type", ["Explicit", "Auto"])
def test_sharded_over_two_cards(tmp_path, axis_type):
    """Results lie where the script asks for them, in meshes of both kinds, with `shard_map` and `set_mesh`."""
    script = written(
        tmp_path,
        "from jax.sharding import AxisType, NamedSharding, PartitionSpec as P",
        f"mesh = jax.make_mesh((2,), ('data',), axis_types=(AxisType.{axis_type},))",
        "split = NamedSharding(mesh, P('data'))",
        "x = jax.jit(lambda key: jax.random.normal(key, (2048, 512)), out_shardings=split)(jax.random.key(0))",
        "w = jax.device_put(jnp.ones((512, 512)), NamedSharding(mesh, P()))",
        "@jax.jit",
        "@jax.shard_map(mesh=mesh, in_specs=(P(), P('data')), out_specs=(P(), P()))",
        "def step(w, x):",
        "    loss, grad = jax.value_and_grad(lambda w: jnp.mean((x @ w) ** 2))(w)",
        "    return w - grad, jax.lax.pmean(loss, 'data')",
        "with jax.set_mesh(mesh):",
        "    w, loss = step(w, x)",
        "print(x.sharding.spec, w.sharding.spec)",
    )
    process = run("--gpus", 2, script)

    assert process.returncode == 0, process.stderr
    assert ".py:" not in process.stdout.replace("script.py:", "")
    assert "P('data',) P()" in process.stdout.replace("PartitionSpec", "P")


def test_pmap_is_a_step_of_each_card(tmp_path):
    """Of what `jax.pmap` maps each card holds its own."""
    script = written(
        tmp_path,
        "from functools import partial",
        "@partial(jax.pmap, axis_name='data', donate_argnums=0)",
        "def step(w, x):",
        "    grad = jax.grad(lambda w: jnp.mean(jnp.tanh(x @ w) ** 2))(w)",
        "    return w - jax.lax.pmean(grad, 'data')",
        "w = jnp.ones((2, 1024, 1024))",
        "for _ in range(2):",
        "    w = step(w, np.ones((2, 64, 1024), np.float32))",
        "print('part', w.addressable_shards[0].data.shape)",
    )
    process = run("--gpus", 2, script, json_file=tmp_path / "report.json")
    report = json.loads((tmp_path / "report.json").read_text())
    program = report["programs"][0]

    assert process.returncode == 0, process.stderr
    assert len(report["steps"]) == 2
    assert program["name"] == "step"
    assert program["argument_bytes"] == (4 << 20) + 64 * 1024 * 4
    assert {row["module"] for row in report["live_at_peak"] if row["category"] == "parameter"} == {"w"}
    assert "part (1, 1024, 1024)" in process.stdout


def test_orbax_restores_items(tmp_path):
    """Of a `Composite` each item comes back, by its name, and without shapes there is one sentence."""
    pytest.importorskip("orbax.checkpoint")
    script = written(
        tmp_path,
        "import orbax.checkpoint as ocp",
        "shapes = {'w': jax.ShapeDtypeStruct((512, 512), jnp.float32)}",
        "args = ocp.args.Composite(state=ocp.args.StandardRestore(shapes))",
        f"manager = ocp.CheckpointManager({str(tmp_path / 'run')!r})",
        "print(manager.restore(1, args=args).state['w'].shape)",
        f"print(ocp.StandardCheckpointer().restore({str(tmp_path / 'one')!r}, shapes)['w'].shape)",
        f"ocp.StandardCheckpointer().restore({str(tmp_path / 'one')!r})",
    )
    process = run(script)

    assert process.stdout.count("(512, 512)") == 2, process.stderr
    assert "jax-restore" in process.stderr
    assert "Traceback" not in process.stderr


def test_the_devices_are_those_of_the_card(tmp_path):
    """By name, by platform, and with what is in use."""
    script = written(
        tmp_path,
        "device = jax.devices('gpu')[0]",
        "w = jax.jit(lambda: jnp.ones((1024, 1024)))()",
        "stats = device.memory_stats()",
        "print(device.device_kind, jax.device_count('cuda'), stats['bytes_in_use'], stats['bytes_limit'] >> 30)",
    )
    process = run(script)

    assert f"Tesla T4 1 {4 << 20} 10" in process.stdout, process.stderr


def test_lines_are_the_persons(tmp_path):
    """Of what a library computes, the line that called it."""
    pytest.importorskip("equinox")
    script = written(
        tmp_path,
        "import equinox as eqx",
        "model = eqx.nn.MLP(64, 64, 512, 3, key=jax.random.key(0))",
        "@eqx.filter_jit",
        "@eqx.filter_grad",
        "def step(model, x):",
        "    return jnp.mean(jax.vmap(model)(x) ** 2)",
        "step(model, np.ones((4096, 64), np.float32))",
    )
    process = run(script, json_file=tmp_path / "report.json")
    rows = json.loads((tmp_path / "report.json").read_text())["live_at_peak"]
    of_layers = [row for row in rows if "MLP.layers[" in row["module"] and row["source"]]

    assert of_layers, process.stderr
    assert {row["source"] for row in of_layers} == {"script.py:7"}


def test_a_program_that_has_no_line_fails_at_the_one_that_called_it(tmp_path):
    """As where the state is made: what a program gives back comes from no line within it."""
    script = tmp_path / "state.py"
    script.write_text(
        "import jax, jax.numpy as jnp\n"
        "@jax.jit\n"
        "def make():\n"
        "    return [jnp.zeros((1 << 30,), jnp.float32) for _ in range(5)]\n"
        "def main():\n"
        "    return make()\n"
        "main()\n"
    )
    run(script, json_file=tmp_path / "report.json")
    oom = json.loads((tmp_path / "report.json").read_text())["oom"]

    assert (oom["at"], oom["phase"]) == ("state.py:6", "init")


def test_the_state_of_nnx_has_its_paths(tmp_path):
    """Parameters and moments are what they are used as, though they are made outside of jit, by their paths."""
    pytest.importorskip("flax")
    script = written(
        tmp_path,
        "from flax import nnx",
        "import optax",
        "@nnx.jit(donate_argnums=(0, 1))",
        "def step(model, optimizer, x):",
        "    loss, grads = nnx.value_and_grad(lambda model: jnp.mean(model(x) ** 2))(model)",
        "    optimizer.update(model, grads)",
        "    return loss",
        "model = nnx.Linear(512, 512, rngs=nnx.Rngs(0))",
        "optimizer = nnx.Optimizer(model, optax.adam(1e-3), wrt=nnx.Param)",
        "for _ in range(2):",
        "    step(model, optimizer, np.ones((64, 512), np.float32))",
    )
    process = run(script, json_file=tmp_path / "report.json")
    report = json.loads((tmp_path / "report.json").read_text())
    held = {row["module"]: row["category"] for row in report["live_at_peak"] if row["bytes"] >= 1 << 20}

    assert process.returncode == 0, process.stderr
    assert held["model.kernel"] == "parameter"
    assert {category for name, category in held.items() if "opt_state" in name} == {"optimizer_state"}


def test_what_set_to_zero_freezes_is_frozen(tmp_path):
    """Adding nothing to a parameter leaves it as it is; and stopping every gradient is no proposal."""
    script = written(
        tmp_path,
        "import optax",
        "tx = optax.multi_transform({'a': optax.adam(1.0), 'z': optax.set_to_zero()}, {'base': 'z', 'lora': 'a'})",
        "params = {'base': jnp.ones((1024, 1024)), 'lora': jnp.ones((1024, 8))}",
        "state = tx.init(params)",
        "@jax.jit",
        "def step(params, state, x):",
        "    loss = lambda p: jnp.mean(jnp.tanh(x @ p['lora'] @ p['lora'].T @ p['base']) ** 2)",
        "    updates, state = tx.update(jax.grad(loss)(params), state, params)",
        "    new = optax.apply_updates(params, updates)",
        "    return jax.tree.map(lambda a, b: jnp.where(x[0, 0] > 0, a, b), new, params), state",
        "for _ in range(2):",
        "    params, state = step(params, state, np.ones((64, 1024), np.float32))",
    )
    process = run(script, json_file=tmp_path / "report.json")
    report = json.loads((tmp_path / "report.json").read_text())

    assert process.returncode == 0, process.stderr
    assert not {"jax-freeze-filter", "jax-backward-through-frozen"} & {each["rule"] for each in report["findings"]}


def test_arrays_leave_the_card(tmp_path):
    """By `jax.device_get` and by pickle, as checkpoints of scripts do it, as arrays of NumPy."""
    script = written(
        tmp_path,
        "import pickle",
        "w = jax.jit(lambda: {'w': jnp.full((1024, 1024), 3.0), 'step': 7})()",
        "on_host = jax.device_get(w)",
        "print(type(on_host['w']).__name__, on_host['w'].shape, jax.device_get([1, w['step']]))",
        "print(len(pickle.dumps(w)) < 10_000, pickle.loads(pickle.dumps(w))['w'].shape)",
    )
    process = run("--steps", 0, script)

    assert "ndarray (1024, 1024) [1, " in process.stdout
    assert "True (1024, 1024)" in process.stdout


def test_zeros_lie_as_what_they_are_like(tmp_path):
    """An optimizer that starts outside of jit has moments that are spread over the cards as the parameters are."""
    script = written(
        tmp_path,
        "import optax",
        "from jax.sharding import Mesh, NamedSharding, PartitionSpec as P",
        "mesh = Mesh(np.array(jax.devices()), ('data',))",
        "w = jax.device_put(np.ones((1024, 1024), np.float32), NamedSharding(mesh, P('data')))",
        "state = optax.adam(1e-3).init({'w': w})",
        "print('moment', state[0].mu['w'].sharding == w.sharding, state[0].mu['w'].dtype, jnp.ones_like(w[0]).shape)",
    )
    process = run("--gpus", 2, "--steps", 0, script)

    assert "moment True float32 (1024,)" in process.stdout, process.stderr
