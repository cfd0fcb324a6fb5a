"""Batches that have several rows for each sample that the loader was asked for."""

import pytest

from peaksight.diagnosis.evidence import Evidence
from peaksight.diagnosis.rules import collate_multiplies
from peaksight.records import BatchFact, Outcome, Role
from peaksight.units import MIB
from tests.helpers import allocation_of, capture_of, step_of


def test_seven_of_eight_rows_go():
    """Of 80 MiB of activations and 8 MiB of input, beside 20 MiB of parameters."""
    (finding,) = _look("float32[128, 3, 32, 32]; int64[128]")

    assert finding.bytes == 7 * (80 + 8) * MIB // 8
    assert finding.title == "The loader gives 128 rows at a batch size of 16: 8 times as many"
    assert "in 3 of 3 batches" in finding.evidence[0]
    assert finding.at == "train.py:9"


def test_a_label_for_each_sample_is_no_contradiction():
    """The place of the right one among eight."""
    (finding,) = _look("int64[128, 64]; int64[16]")

    assert finding.bytes == 77 * MIB


@pytest.mark.parametrize(
    "shapes",
    [
        "float32[16, 3, 32, 32]; int64[16]",  # as many as asked for
        "int64[16, 512]; int64[8192]",  # labels of tokens
        "int64[8192]; int64[8192]",  # tokens in a row
        "int64[128, 16]; int64[16]",  # lengths first
        "float32[16000, 32]; int64[2, 64000]; int64[16000]; int64[17]",  # graphs in a row
        "float32[32, 3, 32, 32]; int64[32]; int64[33]",  # offsets of sequences
        "float32[5472, 1176]; int64[16, 714]; int64[16, 3]",  # patches in a row, beside the tokens of each sample
        "",
    ],
)
def test_what_is_laid_out_in_another_way_is_not_multiplied(shapes):
    """Near miss: the first dimension is another one, or as large as asked for."""
    assert _look(shapes).outcome is Outcome.REFUTED


def test_rows_that_vary_are_packed():
    """Near miss: 8, 9 and 10 times by chance."""
    answer = _look("float32[128, 32]", "float32[144, 32]", "float32[160, 32]")

    assert answer.outcome is Outcome.REFUTED


@pytest.mark.parametrize("batch_size", [0, 1])
def test_a_size_that_says_nothing_multiplies_nothing(batch_size):
    """One sample of 128 rows has no dimension for samples."""
    assert _look("float32[128, 32]", batch_size=batch_size).outcome is Outcome.REFUTED


def test_little_beside_the_model_is_no_cause():
    """Near miss: parameters make the peak."""
    answer = _look("float32[128, 32]", parameters=50000)

    assert answer.why == "with one row a sample instead of 8 the peak falls by 77.00 MiB only"


def test_another_loader_has_its_own():
    """The activations are born of a batch that is as it should be, after the input of one that is not."""
    facts = [_batch(1, "float32[128, 32]"), _batch(1, "float32[128, 32]"), _batch(2, "float32[16, 32]", loader=1)]
    (finding,) = collate_multiplies.RULE.look(Evidence(_capture(facts)))

    assert finding.bytes == 7 * MIB


def test_without_a_loader_nothing_is_known():
    """The script makes its batches by itself."""
    answer = collate_multiplies.RULE.look(Evidence(_capture([])))

    assert answer.outcome is Outcome.NOT_DECIDABLE


def _look(*shapes, parameters=20, batch_size=16):
    texts = shapes if len(shapes) > 1 else shapes * 3
    facts = [_batch(1, text, batch_size=batch_size) for text in texts]
    return collate_multiplies.RULE.look(Evidence(_capture(facts, parameters)))


def _batch(tick, shapes, loader=0, batch_size=16):
    return BatchFact(tick=tick, step=1, loader=loader, at="train.py:9", batch_size=batch_size, bytes=MIB, shapes=shapes)


def _capture(batches, parameters=20):
    """Parameters are there before the batch arrives, at tick 2; activations at tick 3."""
    return capture_of(
        allocation_of(parameters * MIB, born=1, role=Role.PARAMETER),
        allocation_of(8 * MIB, born=2, died=5, role=Role.INPUT, source="train.py:10"),
        allocation_of(80 * MIB, born=3, died=4, backward=1, saved_by="MmBackward0", source="train.py:10"),
        steps=(step_of(1, 1, 6, [4]),),
        observed=True,
        batches=tuple(batches),
    )
