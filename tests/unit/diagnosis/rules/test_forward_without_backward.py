"""Forwards that save for no backward pass."""

from dataclasses import replace

from peaksight.diagnosis.evidence import Evidence
from peaksight.diagnosis.rules.forward_without_backward import RULE
from peaksight.records import Effect, Outcome, Phase
from peaksight.units import MIB
from tests.helpers import allocation_of, capture_of, step_of
from tests.helpers_passes import backward_of, call_of


def look(*, teacher_backward=0, recorded=True, num_blocks=6, lives_on=True, more=()):
    """A teacher's forward of 8 MiB a layer, then a student's with a backward pass."""
    teacher = [
        allocation_of(
            8 * MIB,
            born=born,
            died=40 if lives_on else born + 1,
            backward=teacher_backward,
            grad_enabled=recorded,
            module="Teacher.layer",
            source="distill.py:7",
        )
        for born in range(10, 10 + 2 * num_blocks, 2)
    ]
    student = allocation_of(MIB, born=31, died=50, backward=1, module="Student")
    calls = [call_of(10, 28, module="Teacher", training=False, recorded=recorded), call_of(30, 32, module="Student")]
    return RULE.look(
        Evidence(
            capture_of(
                *teacher,
                student,
                *more,
                observed=True,
                passes=calls,
                backwards=[backward_of(1, 35)],
                steps=[step_of(1, 1, 60, (35,))],
            )
        )
    )


def test_a_teacher_that_is_recorded():
    """Two of its results at a time are left."""
    (finding,) = look()

    assert finding.bytes == 32 * MIB
    assert finding.at == "distill.py:7"
    assert "1 calls of Teacher in eval mode" in finding.evidence[-1]
    assert (finding.fixes[0].kind, finding.fixes[0].effect) == ("no-grad", Effect.BITWISE)


def test_a_teacher_that_learns_is_used():
    """A backward pass goes through it."""
    assert look(teacher_backward=1).outcome is Outcome.REFUTED


def test_a_teacher_without_a_graph_saves_nothing():
    """Under no_grad, or with frozen parameters."""
    assert look(recorded=False).outcome is Outcome.REFUTED
    assert look(lives_on=False).outcome is Outcome.REFUTED


def test_a_teacher_that_is_recomputed_is_used():
    """GIVEN checkpoints in it, THEN autograd saves nothing of the forward that could be known, but it runs again."""
    again = allocation_of(8 * MIB, born=36, died=37, phase=Phase.BACKWARD, module="Teacher.layer")

    assert look(more=[again]).outcome is Outcome.REFUTED


def look_without_training(finished):
    """A forward of 48 MiB that is recorded, in training mode, and no backward pass."""
    saved = [
        allocation_of(8 * MIB, born=born, died=40, grad_enabled=True, module="Net.layer", source="embed.py:7")
        for born in range(10, 22, 2)
    ]
    capture = capture_of(*saved, observed=True, passes=[call_of(10, 22, module="Net", training=True)], steps=[])
    return RULE.look(Evidence(replace(capture, finished=finished)))


def test_a_script_that_trains_nothing():
    """At its end no backward pass can come; near miss: it was left before."""
    (finding,) = look_without_training("script")

    assert finding.bytes == 32 * MIB
    assert look_without_training("interrupted").outcome is Outcome.NOT_DECIDABLE
