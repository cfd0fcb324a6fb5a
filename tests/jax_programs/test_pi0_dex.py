"""examples/systems/pi0_dex: what peaksight finds in it, and what it says of the fix that its authors tried."""

import json
import subprocess
import sys
from dataclasses import replace
from functools import cache
from pathlib import Path

import pytest

jax = pytest.importorskip("jax")
pytest.importorskip("optax")

import jax.numpy as jnp  # noqa: E402

import peaksight.jax  # noqa: E402
from jax_programs.renaming import renamed  # noqa: E402
from peaksight.diagnosis.jax_diagnose import examine_program  # noqa: E402
from peaksight.jax.facts import program_of  # noqa: E402
from peaksight.jax.liveness import liveness  # noqa: E402

SYSTEM = Path(__file__).parents[2] / "examples" / "systems" / "pi0_dex"
SMALL = ("--scale", "small", "--batch", "2")


@pytest.fixture(scope="module")
def train():
    """The script as a module."""
    sys.path.insert(0, str(SYSTEM))
    import train

    yield train
    sys.path.remove(str(SYSTEM))
    del sys.modules["train"], sys.modules["model"]


def traced(train, *words, **changes):
    """`init` and `train_step` of the variant that `words` name, traced with shapes."""
    args = train.parser.parse_args(list(words))
    config = replace(train.config_of(args), **changes)
    frozen = train.frozen_of(config, args)
    init, step = (jax.jit(fn, donate_argnums=0) for fn in train.make(config, frozen))
    made = jax.eval_shape(lambda key: train.restore(config, frozen, args.variant == "fixed", key), jax.random.key(0))
    batch = jax.eval_shape(lambda: jax.tree.map(jnp.asarray, next(train.episodes(config, args.batch))))
    state = jax.eval_shape(init, made)
    return init, made, step.trace(state, batch, jax.eval_shape(lambda: jax.random.key(0))), state


def bytes_of(state):
    return sum(leaf.size * leaf.dtype.itemsize for leaf in jax.tree.leaves(state))


def findings_of(step):
    donated = [info.donated for info in jax.tree.leaves(step.args_info)]
    return {finding.rule: finding for finding in examine_program(program_of(step.jaxpr, donated=donated))[0]}


def report_of(*words, gpu="l40s", script=SYSTEM / "train.py"):
    command = [sys.executable, "-m", "peaksight", "run", "--json", "-", "--gpu", gpu, script.name, *words]
    done = subprocess.run(command, cwd=script.parent, capture_output=True, text=True, check=False)
    assert done.returncode in (0, 1), done.stderr
    return json.loads(done.stdout)


@cache
def report_on(variant):
    return report_of(*SMALL, "--variant", variant)


def essence(report):
    """Of each finding what no name decides over."""
    return [
        (each["rule"], each["bytes"], each["at"], [(fix["kind"], fix["saves_bytes"]) for fix in each["fixes"]])
        for each in report["findings"]
    ]


def test_the_filter_that_freezes_nothing_is_the_first_finding():
    """With the state that the filter would leave if it took any pattern in place of all."""
    report = report_on("before")
    first = report["findings"][0]

    assert "jax-freeze-filter" == first["rule"]
    assert first["at"].startswith("train.py:")
    assert 0 == first["title"].find("A mask over 73 parameters selects none of them")
    assert 0.3 * report["peak"]["allocated_bytes"] < first["bytes"]
    assert "selects 45 leaves" in first["fixes"][0]["text"]
    assert "jax-freeze-filter" not in {each["rule"] for each in report_on("fixed")["findings"]}


def test_stopping_gradients_earlier_saves_nothing():
    """Found by itself, and the peaks say so too."""
    before, note = report_on("before"), report_on("note")
    (idle,) = [each for each in note["findings"] if each["rule"] == "jax-stop-without-effect"]

    assert before["peak"]["allocated_bytes"] == note["peak"]["allocated_bytes"]
    assert (0, True) == (idle["bytes"], idle["without_effect"])
    assert "jax-stop-without-effect" not in {each["rule"] for each in before["findings"]}


def test_the_findings_are_the_same_under_other_names(tmp_path):
    """Nothing is told by names."""
    names = renamed(SYSTEM, tmp_path)

    assert {"is_frozen", "FROZEN", "frozen"} <= names
    assert essence(report_on("note")) == essence(report_of(*SMALL, "--variant", "note", script=tmp_path / "train.py"))


def test_the_state_at_full_size(train):
    """By the audit of the note: 12 bytes for each of 3.84 billion parameters, where 7.96 GB were meant."""
    init, made, _, state = traced(train, "--variant", "before")
    report = peaksight.jax.predict(init, made, gpu="l40s")
    meant = traced(train, "--variant", "fixed", hand_embedder=True)[3]

    assert 3_838_169_904 == sum(leaf.size for leaf in jax.tree.leaves(made))
    assert 46_058_038_848 == bytes_of([state["params"], *_moments(state)])
    assert 7_962_149_088 == bytes_of([meant["params"], *_moments(meant)])
    # Nothing was run before `init`: what it takes on the card are its results, and no trace of a loss.
    assert not report.fits
    assert 46_058_038_848 == pytest.approx(report.peak.allocated_bytes, rel=1e-4)


def _moments(state):
    (adam,) = [each for each in jax.tree.leaves(state["opt_state"], is_leaf=_is_adam) if _is_adam(each)]
    return adam.mu, adam.nu


def _is_adam(node):
    return hasattr(node, "mu")


def test_two_forwards_cost_less_than_a_joint_one(train):
    """With the language model and the images frozen in both, at full size and batch 32: beside the state."""
    words = ("--freeze", "prefix", "--batch", "32")
    two, joint = (traced(train, *words, "--model", model)[2] for model in ("dex", "base"))
    beside = [liveness(step.jaxpr, donated=_donated(step)).temporary_bytes for step in (two, joint)]

    assert 2 * beside[0] < beside[1]


def _donated(step):
    return [info.donated for info in jax.tree.leaves(step.args_info)]


def test_checkpoints_that_are_undone_outside_of_a_scan(train):
    """`prevent_cse=False` is right in the scan, and undoes them where the layers are written out."""
    words = (*SMALL[:2], "--model", "base", "--batch", "16")
    written_out = findings_of(traced(train, *words, "--unroll")[2])["jax-checkpoint-merged"]

    assert written_out.at.startswith("model.py:")
    assert written_out.fixes[0].saves_bytes > 0
    assert "jax-checkpoint-merged" not in findings_of(traced(train, *words)[2])
