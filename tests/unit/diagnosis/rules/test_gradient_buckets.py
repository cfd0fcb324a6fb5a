"""Buckets of DistributedDataParallel."""

from peaksight.diagnosis.evidence import Evidence
from peaksight.diagnosis.rules.gradient_buckets import RULE
from peaksight.records import Outcome, Role
from peaksight.units import MIB
from tests.helpers import allocation_of, capture_of


def look(*gradient_bytes, bucket_bytes=8 * MIB):
    """A bucket, and the gradients."""
    buckets = [allocation_of(bucket_bytes, born=1, role=Role.COMMUNICATION)] if bucket_bytes else []
    gradients = [allocation_of(size, born=2 + i, role=Role.GRADIENT) for i, size in enumerate(gradient_bytes)]
    return RULE.look(Evidence(capture_of(*buckets, *gradients)))


def test_gradients_beside_their_buckets():
    """They would go, each as soon as it is in its bucket."""
    (finding,) = look(4 * MIB, 4 * MIB)

    assert finding.bytes == 4 * MIB  # the other is born at the peak
    assert finding.fixes[0].kind == "gradient-as-bucket-view"


def test_a_peak_at_which_there_are_no_gradients():
    """Near miss: the buckets stay."""
    bucket = allocation_of(8 * MIB, born=1, role=Role.COMMUNICATION)
    activations = allocation_of(64 * MIB, born=2, died=3)
    gradients = [allocation_of(4 * MIB, born=born, role=Role.GRADIENT) for born in (4, 5)]

    assert "the peak falls by little" in look_at(bucket, activations, *gradients).why


def test_gradients_that_are_views_of_buckets():
    """They have no blocks."""
    assert "views of the 8.00 MiB of buckets" in look(MIB).why


def test_one_process_has_no_buckets():
    """Nothing to reduce."""
    assert look(4 * MIB, bucket_bytes=0).outcome is Outcome.REFUTED


def test_gradients_that_are_joined_to_a_vector():
    """Without any process group: the vector would go."""
    gradients = [allocation_of(4 * MIB, born=born, role=Role.GRADIENT) for born in (2, 3)]
    vector = allocation_of(8 * MIB, born=4, died=5, op="aten::cat", copy_of=3)
    (finding,) = look_at(*gradients, vector)

    assert finding.bytes == 8 * MIB
    assert finding.fixes[0].kind == "gradients-one-by-one"


def test_a_few_gradients_that_are_joined_are_no_second_copy():
    """Near miss: those of the biases."""
    gradients = [allocation_of(4 * MIB, born=born, role=Role.GRADIENT) for born in (2, 3)]

    assert look_at(*gradients, allocation_of(MIB, born=4, died=5, op="aten::cat", copy_of=3)).outcome is Outcome.REFUTED


def look_at(*allocations):
    """A run of these."""
    return RULE.look(Evidence(capture_of(*allocations)))
