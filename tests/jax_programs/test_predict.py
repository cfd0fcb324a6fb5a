"""`peaksight.jax.predict`: what a program needs, who holds it, and whether JAX's pool has it."""

import signal
import subprocess
import sys
from functools import partial

import pytest

jax = pytest.importorskip("jax")

import jax.numpy as jnp  # noqa: E402
from jax.ad_checkpoint import checkpoint_name  # noqa: E402

import peaksight.jax  # noqa: E402
from peaksight.errors import UnsupportedError, UsageError  # noqa: E402
from peaksight.gpus import find_card  # noqa: E402
from peaksight.jax.compiler import COMPILER, Answer, Compiler, Order  # noqa: E402
from peaksight.jax.compiler_process import topology_of  # noqa: E402
from peaksight.jax.compiling import WITHOUT_TRITON, NoCompiler, compile_for  # noqa: E402
from peaksight.jax.predicting import traced_call  # noqa: E402
from peaksight.jax.roles import place_of  # noqa: E402
from peaksight.jax.targets import target_config  # noqa: E402
from peaksight.records import Category  # noqa: E402


def has_compiler():
    """Whether the CUDA plugin is there."""
    try:
        topology_of(target_config(find_card("h100-80gb")))
    except Exception:
        return False
    return True


needs_compiler = pytest.mark.skipif(not has_compiler(), reason="needs the CUDA plugin of JAX")


def layer(x, w):
    with jax.named_scope("mlp"):
        return jnp.tanh(x @ w)


def loss(params, x):
    for w in params["layers"]:
        x = layer(x, w)
    return jnp.mean(x**2)


def step(state, x):
    """One step of gradient descent with momentum."""
    grads = jax.grad(loss)(state["params"], x)
    mu = jax.tree.map(lambda m, g: 0.9 * m + g, state["mu"], grads)
    return {"params": jax.tree.map(lambda p, m: p - 0.1 * m, state["params"], mu), "mu": mu}


def shape(*dims, dtype=jnp.float32):
    return jax.ShapeDtypeStruct(dims, dtype)


def state_of(width, depth):
    weights = {"layers": [shape(width, width) for _ in range(depth)]}
    return {"params": weights, "mu": weights}


WIDTH, DEPTH, BATCH = 512, 4, 8192
ARGS = state_of(WIDTH, DEPTH), shape(BATCH, WIDTH)
STATE_BYTES = 2 * DEPTH * WIDTH * WIDTH * 4

predict = partial(peaksight.jax.predict, step, *ARGS)


@needs_compiler
def test_what_is_alive_adds_up_to_the_peak():
    """Every byte has its row, and arguments, optimizer state and activations are told apart."""
    report = predict(donate_argnums=0)
    held = {row.category: 0 for row in report.live_at_peak}
    for row in report.live_at_peak:
        held[row.category] += row.bytes

    assert report.peak.allocated_bytes == sum(row.bytes for row in report.live_at_peak)
    assert held[Category.PARAMETER] == held[Category.OPTIMIZER_STATE] == STATE_BYTES // 2
    assert held[Category.INPUT] == BATCH * WIDTH * 4
    assert held[Category.ACTIVATION] >= 2 * BATCH * WIDTH * 4


@needs_compiler
def test_lines_scopes_and_arguments_are_named():
    """The largest activation is made on the line of the layer, within its name scope."""
    report = predict(donate_argnums=0)
    activation = next(row for row in report.live_at_peak if row.category is Category.ACTIVATION)

    assert activation.source.startswith("test_predict.py:")
    assert "mlp" in activation.module
    assert any(row.module == "state['params']['layers'][0]" for row in report.live_at_peak)


@needs_compiler
def test_a_state_that_is_not_donated_is_there_twice():
    """The outputs need memory of their own, and a rule says so."""
    donated, kept = predict(donate_argnums=0), predict()

    assert kept.peak.allocated_bytes > donated.peak.allocated_bytes
    assert any(finding.rule == "jax-state-not-donated" for finding in kept.findings)


@needs_compiler
def test_the_pool_is_a_fraction_of_the_card(monkeypatch):
    """What the card has and the pool has not fails, with the words of XLA."""
    need = predict(donate_argnums=0).peak.allocated_bytes
    tight = predict(donate_argnums=0, memory_bytes=int(need * 1.2) + (600 << 20))
    monkeypatch.setenv("XLA_PYTHON_CLIENT_MEM_FRACTION", "0.05")
    failing = predict(donate_argnums=0, memory_bytes=int(need * 1.2) + (600 << 20))

    assert tight.fits is not False
    assert failing.fits is False
    assert failing.oom.message.startswith("RESOURCE_EXHAUSTED: Out of memory while trying to allocate")
    assert failing.peak.allocated_bytes == need


@needs_compiler
def test_sharded_arguments_count_once_for_each_card():
    """Of a batch that is split over two cards, one card holds half, and of what is computed from it too."""
    mesh = jax.make_mesh((2,), ("data",))
    split = jax.sharding.NamedSharding(mesh, jax.sharding.PartitionSpec("data"))
    whole = jax.sharding.NamedSharding(mesh, jax.sharding.PartitionSpec())
    state, x = ARGS
    sharded = jax.ShapeDtypeStruct(x.shape, x.dtype, sharding=split)
    copied = jax.tree.map(lambda each: jax.ShapeDtypeStruct(each.shape, each.dtype, sharding=whole), state)
    report = peaksight.jax.predict(step, copied, sharded, donate_argnums=0)
    held = sum(row.bytes for row in report.live_at_peak if row.category is Category.INPUT)

    assert held == BATCH * WIDTH * 4 // 2
    assert report.peak.allocated_bytes < 0.75 * predict(donate_argnums=0).peak.allocated_bytes


def test_a_function_that_cannot_be_traced():
    """JAX's own line is in the sentence."""

    def decides(x):
        return x if x > 0 else -x

    with pytest.raises(UnsupportedError, match="Can't trace decides: ") as raised:
        peaksight.jax.predict(decides, shape())
    assert raised.value.slug == "jax-trace"


def test_an_unknown_card_and_one_that_is_too_old():
    """Each has its sentence."""
    with pytest.raises(UsageError, match="Unknown GPU"):
        predict(gpu="h9000")
    with pytest.raises(UnsupportedError, match=r"compute capability 7\.5"):
        predict(gpu="v100-16gb")


def test_without_the_plugin_liveness_answers(monkeypatch):
    """The report says so, and still adds up."""

    def missing(card, call, num_devices=1):
        raise NoCompiler("no plugin")

    monkeypatch.setattr("peaksight.jax.execution.compile_for", missing)
    report = predict(donate_argnums=0)

    assert {"jax-liveness"} <= {unknown.slug for unknown in report.not_simulated}
    assert report.peak.allocated_bytes == sum(row.bytes for row in report.live_at_peak)
    assert report.peak.allocated_bytes > STATE_BYTES


@pytest.mark.parametrize(
    ("code", "says", "num_asked"),
    [(-9, "SIGKILL, as where the host has too little memory", 1), (-11, "ended with SIGSEGV)", 2)],
)
def test_a_compiler_that_ends_is_not_the_end(monkeypatch, code, says, num_asked):
    """One that crashes is asked again without Triton; where that ends too it is an estimate, and one sentence."""
    asked = []

    def ends(order):
        asked.append(order.options)
        return Answer(code=code)

    monkeypatch.setattr(COMPILER, "plan", ends)
    (what,) = [each.what for each in predict(donate_argnums=0).not_simulated if each.slug == "jax-liveness"]

    assert says in what
    assert asked == [{}, WITHOUT_TRITON][:num_asked]


@needs_compiler
def test_a_plan_without_triton_is_a_plan(monkeypatch):
    """It counts as XLA's own."""
    plan = COMPILER.plan
    monkeypatch.setattr(COMPILER, "plan", lambda order: plan(order) if order.options else Answer(code=-11))

    assert not [each.what for each in predict(donate_argnums=0).not_simulated if each.slug == "jax-liveness"]


@needs_compiler
def test_the_compiler_is_told_nothing_of_the_pool(monkeypatch):
    """Whose settings may be nonsense when it is first asked."""
    compiler = Compiler()
    monkeypatch.setattr("peaksight.jax.compiling.COMPILER", compiler)
    monkeypatch.setenv("XLA_PYTHON_CLIENT_MEM_FRACTION", "half")
    compiler.start()
    monkeypatch.delenv("XLA_PYTHON_CLIENT_MEM_FRACTION")
    report = predict(donate_argnums=0)
    compiler.close()

    assert "jax-liveness" not in {each.slug for each in report.not_simulated}


CRASH = """
import os
from peaksight.jax import compiler_process
from peaksight.jax.compiler import Order
compiler_process.answer_to = lambda order: os.abort()
order = Order(module=b"", target="", num_cards=1, num_devices=1, folder="")
print([compiler_process._in_a_fork(order).code for _ in range(2)])
"""


def test_a_crash_ends_only_the_fork():
    """The process that serves lives on."""
    done = subprocess.run([sys.executable, "-c", CRASH], capture_output=True, text=True, check=True)

    assert done.stdout == f"{[-signal.SIGABRT.value] * 2}\n"


PLANNED = """
import os, sys, time
from pathlib import Path
from peaksight.jax import compiler_process
from peaksight.jax.compiler import Order

def plan(order):
    for ending in (".txt", "-live-range.txt", "-buffer-assignment.txt"):
        with Path(order.folder, "step" + ending).open("w", buffering=1) as file:
            file.write("first\\n")
            time.sleep(0.2)
            file.write("last\\n")
    if "crashes" in sys.argv:
        os.abort()
    while True:
        time.sleep(60)

compiler_process.answer_to = plan
print(compiler_process._in_a_fork(Order(module=b"", target="", num_cards=1, num_devices=1, folder=sys.argv[1])).code)
"""


@pytest.mark.parametrize("then", ["generates", "crashes"])
def test_no_kernel_is_waited_for(tmp_path, then):
    """The plan of the memory is the answer once it is whole, whatever becomes of the rest."""
    command = [sys.executable, "-c", PLANNED, str(tmp_path), then]

    assert subprocess.run(command, capture_output=True, text=True, check=True).stdout == "0\n"
    assert [file.read_text() for file in tmp_path.iterdir()] == ["first\nlast\n"] * 3


@needs_compiler
def test_sizes_are_those_of_the_compiled_program():
    """As JAX's `memory_analysis` has them of the same compile."""
    topology = topology_of(target_config(find_card("h100-80gb")))
    sharding = jax.sharding.SingleDeviceSharding(topology.devices[0])
    shapes = jax.tree.map(lambda each: jax.ShapeDtypeStruct(each.shape, each.dtype, sharding=sharding), ARGS)
    expected = jax.jit(step, donate_argnums=0).lower(*shapes).compile().memory_analysis()
    planned = compile_for(find_card("h100-80gb"), traced_call(step, ARGS, {"donate_argnums": 0}))

    assert planned.argument_bytes == expected.argument_size_in_bytes
    assert planned.output_bytes == expected.output_size_in_bytes
    assert planned.aliased_bytes == expected.alias_size_in_bytes
    assert planned.temporary_bytes == expected.temp_size_in_bytes


@needs_compiler
def test_what_is_offloaded_is_on_the_host():
    """The residuals of a scan that a policy keeps in the host's memory are no need of the card."""

    def step_with(policy):
        def body(x, w):
            return jnp.tanh(checkpoint_name(jnp.tanh(x @ w), "hidden") @ w.T), None

        def loss(ws, x):
            return jnp.mean(jax.lax.scan(jax.checkpoint(body, policy=policy, prevent_cse=False), x, ws)[0] ** 2)

        return lambda ws, x: ws - 0.1 * jax.grad(loss)(ws, x)

    def peak_with(policy):
        args = shape(DEPTH, WIDTH, WIDTH), shape(BATCH, WIDTH)
        return peaksight.jax.predict(step_with(policy), *args, donate_argnums=0).peak.allocated_bytes

    names = {"names_which_can_be_saved": [], "names_which_can_be_offloaded": ["hidden"]}
    places = {"offload_src": "device", "offload_dst": "pinned_host"}
    policies = jax.checkpoint_policies
    offloaded = peak_with(policies.save_and_offload_only_these_names(**names, **places))

    assert offloaded <= peak_with(policies.save_only_these_names("hidden")) - (DEPTH - 2) * BATCH * WIDTH * 4


def test_the_compiler_says_what_is_wrong_with_an_order(tmp_path):
    """A module that is none, and a description of no card."""
    order = Order(module=b"no module", target="no card", num_cards=1, num_devices=1, folder=str(tmp_path))

    assert COMPILER.plan(order).is_missing


def test_a_fraction_that_is_none(monkeypatch):
    """The sentence names the variable."""
    monkeypatch.setenv("XLA_PYTHON_CLIENT_MEM_FRACTION", "most")

    with pytest.raises(UsageError, match="XLA_PYTHON_CLIENT_MEM_FRACTION=most"):
        predict()


@pytest.mark.parametrize(
    ("op_name", "expected"),
    [
        ("jit(step)/jvp(GPT)/Block_0/mlp/dot_general", "GPT.Block_0.mlp"),
        (
            "jit(step)/transpose(jvp(GPT))/Block_0/checkpoint/rematted_computation/GPT/Block_0/mlp/tanh",
            "GPT.Block_0.mlp",
        ),
        ("jit(step)/shard_map/jvp()/add", ""),
    ],
)
def test_a_module_is_named_once(op_name, expected):
    """Also where it is computed again, whose path begins with the model once more."""
    assert place_of(op_name) == (expected, op_name.rpartition("/")[2])


def test_a_fix_is_compiled_where_that_is_cheap():
    """What donation saves is the difference of two plans of XLA, the second of which is that of the donated call."""
    kept, donated = predict(), predict(donate_argnums=0)
    finding = next(each for each in kept.findings if each.rule == "jax-state-not-donated")

    assert "compiled again by XLA" in finding.fixes[0].text
    difference = kept.peak.requested_bytes - donated.peak.requested_bytes
    assert pytest.approx(difference, rel=0.01) == finding.fixes[0].saves_bytes


def test_what_timing_convolutions_takes_is_said():
    """Their buffers with guards and a workspace of 4 GiB, as no part of what the training needs."""
    image, kernel = shape(8, 3, 64, 64), shape(16, 3, 3, 3)
    report = peaksight.jax.predict(lambda x, w: jax.lax.conv(x, w, (1, 1), "SAME"), image, kernel)
    (said,) = [each for each in report.not_simulated if each.slug == "jax-convolutions"]

    assert said.at_most_bytes == 0
    assert "4.06 GiB" in said.what or "4.07 GiB" in said.what
    assert "jax-convolutions" not in {each.slug for each in predict().not_simulated}


@needs_compiler
def test_shapes_for_a_step_of_equinox():
    """They count as the arrays that they stand for, beside a model with numbers and in one of shapes."""
    eqx = pytest.importorskip("equinox")
    model = eqx.nn.MLP(64, 64, 64, 1, key=jax.random.key(0))

    @eqx.filter_jit
    def step(model, x):
        return eqx.filter_grad(lambda model: jnp.mean(jax.vmap(model)(x) ** 2))(model)

    of_numbers = peaksight.jax.predict(step, model, shape(4096, 64), gpu="t4")
    of_shapes = peaksight.jax.predict(step, eqx.filter_eval_shape(lambda: model), shape(4096, 64), gpu="t4")

    assert of_numbers.peak.allocated_bytes == of_shapes.peak.allocated_bytes > 4096 * 64 * 4
    assert "float32[4096, 64]" in {each.tensor for each in of_shapes.live_at_peak}
