"""One tensor that stands out, and a checkpoint that stays on the card."""

from peaksight.diagnosis.diagnose import examine
from peaksight.records import Hold, Outcome, Phase, Role
from peaksight.units import MIB
from tests.helpers import allocation_of, capture_of, step_of


def answer(capture, rule):
    """What `rule` finds in `capture`, or why it found nothing."""
    findings, examined = examine(capture)
    found = [each for each in findings if each.rule == rule] or [each for each in examined if each.rule == rule]
    return found[0]


def hold(born, name):
    """A name, seen in the first backward pass."""
    where = {"tick": 5, "step": 1, "phase": Phase.FORWARD, "where": "train.py:main"}
    return Hold(born=born, name=name, shown_bytes=0, by_graph=False, **where)


def loaded(name, *shapes):
    """A model of two parameters, tensors of `shapes` that `name` leads to, and an activation."""
    loads = [
        allocation_of(4 * MIB, born=place, role=Role.INPUT, phase=Phase.INIT, tensor=shape)
        for place, shape in enumerate(shapes, start=1)
    ]
    return capture_of(
        *loads,
        *(
            allocation_of(4 * MIB, born=born, role=Role.PARAMETER, phase=Phase.INIT, tensor=shape)
            for born, shape in ((11, "float32[8]"), (12, "float32[9]"))
        ),
        allocation_of(2 * MIB, born=13, died=15, tensor="float32[3]"),
        steps=(step_of(1, 1, 16, (14,), 0),),
        observed=True,
        holds=tuple(hold(load.born, name) for load in loads),
    )


def test_a_checkpoint_with_a_name():
    """It has the shapes of the parameters, once each; the third tensor is one of its own."""
    found = answer(loaded("state['model']['w']", "float32[8]", "float32[9]", "float32[9]"), "load-copies")

    assert found.bytes == 8 * MIB
    assert found.evidence[0] == "`state['model']['w']` in train.py:main is one of 2 tensors"


def test_what_is_no_checkpoint():
    """A batch of a loader with a name of its own, and a dictionary of other shapes."""
    assert answer(loaded("images", "float32[8]", "float32[9]"), "load-copies").outcome is Outcome.REFUTED
    assert answer(loaded("batch['x']", "float32[7]", "float32[6]"), "load-copies").outcome is Outcome.REFUTED


def test_one_tensor_that_stands_out():
    """GIVEN one of half the peak, THEN its line, operator and shape are told; parameters are never it."""
    about = {"tensor": "float32[9, 9]", "source": "train.py:7", "op": "aten::mul.Tensor"}
    capture = capture_of(
        allocation_of(6 * MIB, born=1, role=Role.PARAMETER),
        allocation_of(8 * MIB, born=2, died=4, **about),
        allocation_of(2 * MIB, born=3, died=5),
    )
    found = answer(capture, "one-large-tensor")

    assert (found.bytes, found.at) == (8 * MIB, "train.py:7")
    assert found.title == "One float32[9, 9] is 8.00 MiB (50 % of the peak)"
    assert found.evidence == ("made by aten::mul.Tensor at train.py:7",)


def test_many_alike_are_no_single_one():
    """GIVEN a peak of equal layers, THEN none stands out."""
    capture = capture_of(*(allocation_of(2 * MIB, born=born, source=f"train.py:{born}") for born in range(1, 9)))

    assert answer(capture, "one-large-tensor").outcome is Outcome.REFUTED


def test_a_few_of_one_shape_stand_out_together():
    """GIVEN three temporaries of a fifth of the peak each, THEN they are told as one."""
    about = {"tensor": "float32[4, 4, 9]", "phase": Phase.BACKWARD, "grad_enabled": False}
    blocks = [allocation_of(4 * MIB, born=born, **about) for born in (2, 3, 4)]
    found = answer(capture_of(allocation_of(8 * MIB, born=1, role=Role.PARAMETER), *blocks), "one-large-tensor")

    assert found.title == "3 times float32[4, 4, 9] is 12.00 MiB (60 % of the peak)"
