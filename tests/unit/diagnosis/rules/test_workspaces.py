"""Workspaces at the peak, and state that is wider than its parameters."""

from peaksight.diagnosis.evidence import Evidence
from peaksight.diagnosis.rules import optimizer_state_precision, workspaces
from peaksight.records import Outcome, Phase, Role
from peaksight.units import MIB
from tests.helpers import allocation_of, capture_of, step_of

CONVOLUTION = {"op": "aten::convolution_backward", "role": Role.WORKSPACE, "source": "train.py:9"}


def test_a_workspace_of_one_call_makes_the_peak():
    """By its operator and line."""
    capture = capture_of(allocation_of(4 * MIB, born=1), allocation_of(6 * MIB, born=2, died=3, **CONVOLUTION))
    (finding,) = workspaces.RULE.look(Evidence(capture))

    assert (finding.bytes, finding.at) == (6 * MIB, "train.py:9")
    assert finding.fixes[0].kind == "cudnn-benchmark-off"


def test_a_workspace_below_the_peak_is_none():
    """Near miss: another moment is higher."""
    capture = capture_of(allocation_of(6 * MIB, born=1, died=2, **CONVOLUTION), allocation_of(8 * MIB, born=3))
    answer = workspaces.RULE.look(Evidence(capture))

    assert answer.outcome is Outcome.REFUTED
    assert answer.why.startswith(
        "without the workspace of any one operator the peak falls by 0 B; the largest, 6.00 MiB of "
    )
    assert answer.why.endswith("aten::convolution_backward, lasts for one call at train.py:9")


def test_a_decomposition_gives_more_than_goes_in():
    """Singular vectors that no backward pass needs, also where an optimizer has asked for them."""
    vectors = {"op": "aten::_linalg_svd", "source": "train.py:9", "phase": Phase.OPTIMIZER}
    capture = capture_of(allocation_of(4 * MIB, born=1), allocation_of(64 * MIB, born=2, died=3, **vectors))
    (finding,) = workspaces.RULE.look(Evidence(capture))

    assert (finding.bytes, finding.at) == (64 * MIB, "train.py:9")
    assert finding.title.startswith("Results of aten::_linalg_svd")
    assert finding.fixes[0].kind == "reduced-decomposition"


def test_vectors_that_later_steps_use_are_no_cost_of_the_call():
    """Near miss: an optimizer goes on with the eigenvectors of a step before."""
    vectors = {"op": "aten::_linalg_eigh", "source": "train.py:9", "phase": Phase.OPTIMIZER}
    blocks = (allocation_of(4 * MIB, born=1), allocation_of(64 * MIB, born=2, died=14, **vectors))
    capture = capture_of(*blocks, steps=[step_of(1, 1, 10), step_of(2, 11, 20)])

    assert workspaces.RULE.look(Evidence(capture)).outcome is Outcome.REFUTED


def test_float32_state_of_a_bfloat16_parameter_could_be_half():
    """A moment and a master copy of 4 MiB each."""
    (finding,) = optimizer_state_precision.RULE.look(Evidence(_with_parameter("bfloat16", 2 * MIB)))

    assert finding.bytes == 4 * MIB


def test_float32_state_of_a_float32_parameter_is_as_it_should_be():
    """Near miss."""
    answer = optimizer_state_precision.RULE.look(Evidence(_with_parameter("float32", 4 * MIB)))

    assert answer.outcome is Outcome.REFUTED


def _with_parameter(dtype, num_bytes):
    wide = {"module": "Net", "tensor": "float32[1024, 1024]"}
    return capture_of(
        allocation_of(num_bytes, born=1, module="Net", role=Role.PARAMETER, tensor=f"{dtype}[1024, 1024]"),
        allocation_of(4 * MIB, born=2, role=Role.OPTIMIZER_STATE, **wide),
        allocation_of(4 * MIB, born=3, role=Role.PARAMETER if dtype == "bfloat16" else Role.OPTIMIZER_STATE, **wide),
        steps=[step_of(1, 1, 40)],
    )
