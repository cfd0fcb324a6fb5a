"""Rules on programs of JAX: what each finds, and what it refutes, in made records."""

from dataclasses import replace

import pytest

from peaksight.diagnosis.catalog import jax_rules
from peaksight.diagnosis.jax_diagnose import examine_program
from peaksight.records import Examined, Outcome
from peaksight.records.jax_program import (
    ArgumentFact,
    Change,
    ConstantFact,
    FreezeMention,
    JaxProgram,
    JobFact,
    MaskFact,
    PoolFact,
    RematFact,
    RematPolicy,
    ScanFact,
    StopFact,
    WhatIf,
)
from peaksight.units import GIB, MIB

PLAIN = JaxProgram(
    name="step",
    peak_bytes=10 * GIB,
    argument_bytes=4 * GIB,
    constant_bytes=0,
    output_bytes=4 * GIB,
    aliased_bytes=4 * GIB,
    temporary_bytes=6 * GIB,
)


def look(slug, **facts):
    return jax_rules()[slug].look(replace(PLAIN, **facts))


def argument(path, **facts):
    known = {"tensor": "float32[1024]", "bytes": 2 * GIB, "is_donated": False, "is_returned": False}
    return ArgumentFact(path=path, **(known | {"is_changed": False, "is_written": False} | facts))


def with_change(change, peak_bytes, **facts):
    return {"what_ifs": (WhatIf(change=change, peak_bytes=peak_bytes, **facts),)}


@pytest.mark.parametrize("slug", jax_rules())
def test_a_plain_program_has_none_of_them(slug):
    """Every rule says what it saw instead."""
    answer = look(slug)

    assert isinstance(answer, Examined)
    assert answer.why


CHANGES = {
    "jax-state-not-donated": (Change.DONATE, "donate"),
    "jax-pass-through-copies": (Change.NOT_RETURNED, "do-not-return"),
    "jax-cast-inside-jit": (Change.CAST_BEFORE, "cast-before-call"),
    "jax-frozen-gradients": (Change.NO_VAIN_GRADIENTS, "gradient-of-trainable"),
    "jax-frozen-state": (Change.NO_FROZEN_STATE, "state-of-trainable"),
    "jax-backward-through-frozen": (Change.STOP_GRADIENT, "stop-gradient"),
}


def test_what_xla_plans_goes_before_what_liveness_says():
    """Where both the function and the changed one were compiled; the text names the tier."""
    what_if = WhatIf(change=Change.DONATE, peak_bytes=7 * GIB, about=("state.w",), bytes=2 * GIB)
    by_liveness = look("jax-state-not-donated", what_ifs=(what_if,), compiled_bytes=9 * GIB)
    compiled = replace(what_if, compiled_bytes=5 * GIB)
    by_xla = look("jax-state-not-donated", what_ifs=(compiled,), compiled_bytes=9 * GIB)

    assert (3 * GIB, 4 * GIB) == (by_liveness[0].bytes, by_xla[0].fixes[0].saves_bytes)
    assert "simulated again by liveness with this change, its peak is 7.00 GiB" in by_liveness[0].fixes[0].text
    assert "compiled again by XLA with this change, its peak is 5.00 GiB instead of 9.00" in by_xla[0].fixes[0].text


@pytest.mark.parametrize("slug", CHANGES)
def test_what_a_change_saves_is_a_finding_where_it_is_notable(slug):
    """Its bytes are the difference of the two peaks; 1 % of the peak is no cause."""
    change, kind = CHANGES[slug]
    cast = argument("state.w", cast_to="bfloat16", cast_at="train.py:3")
    (finding,) = look(slug, arguments=(cast,), **with_change(change, 7 * GIB, about=("state.w",), bytes=2 * GIB))

    assert (3 * GIB, 3 * GIB, kind) == (finding.bytes, finding.fixes[0].saves_bytes, finding.fixes[0].kind)
    assert "7.00 GiB instead of 10.00 GiB" in finding.fixes[0].text
    assert "state.w" in " ".join([finding.title, *finding.evidence, finding.fixes[0].text])
    assert isinstance(
        look(slug, arguments=(cast,), **with_change(change, 10 * GIB - 100 * MIB, about=("state.w",))), Examined
    )


def test_donating_explains_the_copies_of_what_does_not_change():
    """The one finding says what the other would; alone it stands for itself."""
    copies = WhatIf(change=Change.NOT_RETURNED, peak_bytes=8 * GIB, about=("state.frozen['w']",), bytes=2 * GIB)
    donated = WhatIf(change=Change.DONATE, peak_bytes=7 * GIB, about=("state.frozen['w']",), bytes=4 * GIB)
    both, _ = examine_program(replace(PLAIN, what_ifs=(copies, donated)))
    alone, _ = examine_program(replace(PLAIN, what_ifs=(copies,)))

    assert ["jax-state-not-donated"] == [each.rule for each in both]
    assert [("jax-pass-through-copies", 2 * GIB)] == [(each.rule, each.bytes) for each in alone]


def test_checkpoints_that_are_merged():
    """Named with their lines; in a loop prevent_cse=False is right."""
    remat = RematFact(at="model.py:8", in_loop=False, prevents_cse=False, recomputes=True)
    facts = with_change(Change.KEEP_APART, 4 * GIB)
    (finding,) = look("jax-checkpoint-merged", remats=(remat, remat), **facts)

    assert (6 * GIB, "model.py:8") == (finding.bytes, finding.at)
    assert finding.title.startswith("2 calls")
    assert isinstance(look("jax-checkpoint-merged", remats=(replace(remat, in_loop=True),)), Examined)


def test_checkpoints_without_effect():
    """A policy that saves everything, or a peak that is elsewhere."""
    remat = RematFact(at="model.py:8", in_loop=True, prevents_cse=False, recomputes=False)
    apart = RematFact(at="model.py:9", in_loop=False, prevents_cse=True, recomputes=True)
    (saves_all,) = look("jax-remat-without-effect", remats=(remat,))
    (elsewhere,) = look("jax-remat-without-effect", remats=(apart,), **with_change(Change.WITHOUT_REMAT, 10 * GIB))
    useful = look("jax-remat-without-effect", remats=(apart,), **with_change(Change.WITHOUT_REMAT, 30 * GIB))

    assert saves_all.without_effect and elsewhere.without_effect
    assert ("model.py:8", "model.py:9") == (saves_all.at, elsewhere.at)
    assert "30.00 GiB" in useful.why


def test_what_a_scan_keeps():
    """The stacks by their tensors, and what recomputing them saves."""
    scan = ScanFact(
        at="model.py:4",
        scope="jvp(layers)",
        length=12,
        residuals=(("float32[12, 8, 512, 512]", 3 * GIB), ("float32[12, 8, 512, 64]", GIB)),
        carry_bytes=MIB,
        is_checkpointed=False,
    )
    facts = with_change(Change.CHECKPOINT_SCAN, 7 * GIB, at="model.py:4", about=("jvp(layers)",))
    (finding,) = look("jax-scan-residuals", scans=(scan,), **facts)
    refuted = look("jax-scan-residuals", scans=(replace(scan, is_checkpointed=True),))

    assert (3 * GIB, "model.py:4") == (finding.bytes, finding.at)
    assert "12 steps keeps 4.00 GiB" in finding.title
    assert "1 are checkpointed" in refuted.why


def test_constants_of_the_program():
    """The largest with the line that reads it."""
    table = ConstantFact(tensor="float32[50000, 4096]", bytes=GIB, at="train.py:7")
    (finding,) = look("jax-baked-constants", constants=(table,), constant_bytes=GIB)

    assert (GIB, "train.py:7") == (finding.bytes, finding.at)


def test_a_freeze_that_freezes_nothing():
    """Lines that speak of it, and nothing that comes back unchanged."""
    lines = (FreezeMention(at="train.py:3", text="freeze_filter = PathRegex('.*llm.*')"),)
    trained = argument("state.w", is_changed=True)
    (finding,) = look("jax-freeze-filter", freezes=lines, arguments=(trained,))
    frozen = look("jax-freeze-filter", freezes=lines, arguments=(trained, argument("state.v", is_returned=True)))
    no_state = look("jax-freeze-filter", freezes=lines, arguments=(argument("x"),))

    assert "train.py:3: freeze_filter" in finding.evidence[0]
    assert Outcome.REFUTED is frozen.outcome
    assert Outcome.NOT_DECIDABLE is no_state.outcome


def test_a_card_that_others_use():
    """75 % of the card are not there where others hold half of it."""
    pool = PoolFact(total_bytes=80 * GIB, fraction=0.75, preallocates=True, others_bytes=40 * GIB)
    (finding,) = look("jax-preallocation", pool=pool)

    assert 20 * GIB == finding.bytes
    assert "MEM_FRACTION=0.48" in finding.fixes[0].text
    assert isinstance(look("jax-preallocation", pool=replace(pool, preallocates=False)), Examined)
    assert isinstance(look("jax-preallocation", pool=replace(pool, others_bytes=GIB)), Examined)


def test_policies_of_checkpoint():
    """Those that need less, by what they add to the arithmetic."""
    policies = [
        RematPolicy(policy="nothing_saveable", peak_bytes=4 * GIB, flops=400),
        RematPolicy(policy="dots_saveable", peak_bytes=6 * GIB, flops=300),
        RematPolicy(policy="as written", peak_bytes=10 * GIB, flops=300),
        RematPolicy(policy="everything_saveable", peak_bytes=10 * GIB, flops=300),
    ]
    (finding,) = look("jax-remat-policy", policies=tuple(policies))

    assert 6 * GIB == finding.bytes
    assert ["policy-dots-saveable", "policy-nothing-saveable"] == [fix.kind for fix in finding.fixes]
    assert "no more arithmetic" in finding.fixes[0].text
    assert "33 % more arithmetic" in finding.fixes[1].text
    assert isinstance(look("jax-remat-policy", policies=tuple(policies[2:])), Examined)


def test_a_mask_that_selects_nothing():
    """The bytes are those of the job that was simulated again; one that nothing would be in is no finding."""
    mask = MaskFact(at="train.py:9", num_leaves=73, num_selected_by_any=45)
    was, again = JobFact(peak_bytes=9 * GIB, state_bytes=6 * GIB), JobFact(peak_bytes=4 * GIB, state_bytes=GIB)
    (simulated,) = look("jax-freeze-filter", masks=(replace(mask, was=was, again=again),))
    (seen,) = look("jax-freeze-filter", masks=(mask,))

    assert (5 * GIB, "train.py:9") == (simulated.bytes, simulated.at)
    assert "1.00 GiB instead of 6.00 GiB" in simulated.evidence[1]
    assert "4.00 GiB instead of 9.00 GiB" in simulated.fixes[0].text
    assert (0, 1) == (seen.bytes, len(seen.evidence))
    assert isinstance(look("jax-freeze-filter", masks=(replace(mask, num_selected_by_any=0),)), Examined)


def test_a_stop_gradient_behind_which_another_stops():
    """It is without effect; the other one is not."""
    early, late = StopFact(at="model.py:3", again_at=("model.py:5",)), StopFact(at="model.py:5", again_at=())
    (finding,) = look("jax-stop-without-effect", stops=(early, late))

    assert ("model.py:3", True, 0) == (finding.at, finding.without_effect, finding.bytes)
    assert "model.py:5" in look("jax-stop-without-effect", stops=(late,)).why
