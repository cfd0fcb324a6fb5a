"""GIVEN calls of torch.utils.checkpoint and flags of modules, THEN checkpointing in vain is found, and none else."""

from peaksight.diagnosis.evidence import Evidence
from peaksight.diagnosis.rules import checkpointing_inactive, checkpointing_one_region
from peaksight.records import CheckpointFact, CheckpointFlagFact, ModuleFact, Outcome, Phase, StatementFact
from peaksight.units import MIB
from tests.helpers import allocation_of, capture_of, step_of


def call_of(**about):
    facts = {
        "step": 1,
        "at": "train.py:5",
        "module": "Net.body",
        "reentrant": False,
        "input_needs_grad": True,
        "grad_enabled": True,
        "first_tick": 1,
        "last_tick": 2,
        "recomputed_from": 0,
        "recomputed_to": 0,
    }
    return CheckpointFact(**(facts | about))


def flag_of(**about):
    facts = {
        "module": "Net.encoder",
        "kind": "Encoder",
        "flag": "gradient_checkpointing",
        "training": True,
        "num_calls_with_grad": 1,
        "num_checkpoints": 0,
    }
    return CheckpointFlagFact(**(facts | about))


def module_of(path, frozen_bytes=0):
    return ModuleFact(
        module=path,
        parameter_bytes=MIB,
        frozen_bytes=frozen_bytes,
    )


ASKED = StatementFact(
    kind="checkpointing", at="train.py:3", text="model.gradient_checkpointing_enable()", num_runs=None
)


def looked(rule, *allocations, **about):
    allocations = allocations or (allocation_of(MIB, born=1),)
    capture = capture_of(*allocations, steps=[step_of(1, 1, 99, backward_began=[9])], observed=True, **about)
    return rule.look(Evidence(capture))


def recomputed(size, born, died, **about):
    return allocation_of(size, born=born, died=died, phase=Phase.BACKWARD, source="model.py:7", **about)


# One region.


def test_one_region_that_is_run_again_as_a_whole_is_found_with_what_two_would_save():
    held = [recomputed(10 * MIB, born, 50 - born) for born in range(11, 21)]
    base = allocation_of(20 * MIB, born=1, died=98)
    (finding,) = looked(
        checkpointing_one_region.RULE, base, *held, checkpoints=[call_of(recomputed_from=10, recomputed_to=20)]
    )
    assert (finding.bytes, finding.without_effect, finding.at) == (0, True, "train.py:5")
    assert finding.fixes[0].saves_bytes == 50 * MIB
    assert "holds 100.00 MiB" in finding.title


def test_of_several_regions_none_covers_everything():
    base = allocation_of(20 * MIB, born=1, died=98)
    blocks = [recomputed(10 * MIB, 11 + 2 * n, 12 + 2 * n) for n in range(4)]
    calls = [call_of(module=f"Net.{n}", recomputed_from=10 + 2 * n, recomputed_to=11 + 2 * n) for n in range(4)]
    examined = looked(checkpointing_one_region.RULE, base, *blocks, checkpoints=calls)
    assert examined.outcome is Outcome.REFUTED
    assert "4 regions are run again, of which the largest holds 10.00 MiB" in examined.why


def test_a_region_below_the_peak_of_another_phase_is_refuted():
    held = [recomputed(10 * MIB, 11, 20), recomputed(10 * MIB, 12, 20)]
    later = allocation_of(200 * MIB, born=30, died=40, phase=Phase.OPTIMIZER)
    examined = looked(
        checkpointing_one_region.RULE, *held, later, checkpoints=[call_of(recomputed_from=10, recomputed_to=13)]
    )
    assert "falls by 0 B only" in examined.why


# Not active.


def saved(block):
    return allocation_of(10 * MIB, born=block + 1, died=20 - block, module=f"Net.encoder.layers.{block}.mlp")


def test_a_flag_in_eval_mode_is_found_with_what_its_blocks_hold():
    (finding,) = looked(
        checkpointing_inactive.RULE,
        *map(saved, range(4)),
        checkpoint_flags=[flag_of(training=False)],
        statements=[ASKED],
    )
    assert finding.title == "Checkpointing of Net is asked for and not active: Encoder is in eval()"
    assert (finding.at, finding.without_effect, finding.fixes[0].saves_bytes) == ("train.py:3", True, 30 * MIB)
    assert "Its activations hold 40.00 MiB (100 % of the peak) at the peak." in finding.evidence


def test_a_flag_that_no_forward_reads_is_found():
    (finding,) = looked(checkpointing_inactive.RULE, checkpoint_flags=[flag_of()])
    assert "the forward of Encoder does not do it" in finding.title


def test_a_statement_that_no_model_heeds_is_found():
    (finding,) = looked(checkpointing_inactive.RULE, statements=[ASKED])
    assert finding.title == "Checkpointing is asked for at train.py:3, and nothing was checkpointed"


def test_a_reentrant_region_without_an_input_that_needs_a_gradient_trains_nothing():
    calls = [call_of(reentrant=True, input_needs_grad=False)]
    (finding,) = looked(checkpointing_inactive.RULE, checkpoints=calls, modules=[module_of("Net.body.0")])
    assert "not seen by autograd" in finding.title
    frozen = looked(checkpointing_inactive.RULE, checkpoints=calls, modules=[module_of("Net.body.0", MIB)])
    assert frozen.outcome is Outcome.REFUTED


def test_what_is_checkpointed_or_only_evaluated_is_refuted():
    flags = [flag_of(num_checkpoints=4), flag_of(module="Teacher", training=False, num_calls_with_grad=0)]
    examined = looked(checkpointing_inactive.RULE, checkpoint_flags=flags, checkpoints=[call_of()], statements=[ASKED])
    assert examined.outcome is Outcome.REFUTED
    assert "1 call a step" in examined.why


def test_a_record_of_a_real_run_does_not_tell():
    capture = capture_of(allocation_of(MIB, born=1))
    for rule in (checkpointing_inactive.RULE, checkpointing_one_region.RULE):
        assert rule.look(Evidence(capture)).outcome is Outcome.NOT_DECIDABLE
