"""Reserved memory that no tensor uses: what earlier steps left of it, and what keeps it."""

from peaksight.diagnosis.diagnose import examine
from peaksight.diagnosis.reserved import Reserved
from peaksight.records import Gpu, OutOfMemory, Phase
from peaksight.units import MIB
from tests.helpers import allocation_of, capture_of, report_of, step_of


def test_segments_of_shorter_batches_are_left_by_steps():
    """Each step asks for more than all before: 272 MiB of segments, of which an empty cache leaves the last 48."""
    reserved = Reserved(_growing())

    assert reserved.left_by_steps_bytes == (272 - 48) * MIB
    assert reserved.is_of_steps


def test_pieces_of_one_forward_are_not_left_by_steps():
    """Near miss: the same blocks, all in one step."""
    assert not Reserved(_growing(num_steps=1)).is_of_steps


def test_a_block_that_lives_keeps_its_segment():
    """A cached segment of 400 MiB gives 30 to a small one, and has no room for 390 then."""
    capture = capture_of(
        allocation_of(400 * MIB, born=1, died=2),
        allocation_of(30 * MIB, born=3, source="train.py:7"),
        allocation_of(390 * MIB, born=4, died=5),
    )
    (pin, *_) = Reserved(capture).pins

    assert (pin.source, pin.held_bytes, pin.alone_bytes) == ("train.py:7", 30 * MIB, 370 * MIB)


def test_pieces_come_behind_what_tensors_hold():
    """Unless the card had room for what failed, in pieces."""
    capture = _with_activations()
    rules = [finding.rule for finding in examine(capture)[0]]
    assert rules.index("activations") < rules.index("fragmentation")

    gpu = Gpu(name="a card", total_bytes=800 * MIB, usable_bytes=700 * MIB)
    first, *_ = examine(capture, report_of(gpu=gpu, oom=_oom(requested_bytes=390 * MIB)))[0]
    assert first.rule == "fragmentation"


def _with_activations():
    """200 MiB of activations beside a block that keeps a segment of 400."""
    return capture_of(
        allocation_of(400 * MIB, born=1, died=2, phase=Phase.INIT),
        allocation_of(30 * MIB, born=3, phase=Phase.INIT),
        allocation_of(200 * MIB, born=4, died=8, saved_by="MulBackward0", backward=1),
        allocation_of(390 * MIB, born=5, died=6),
        steps=[step_of(1, 1, 9, [7])],
    )


def _oom(requested_bytes):
    return OutOfMemory(
        message="CUDA out of memory.",
        requested_bytes=requested_bytes,
        allocated_bytes=230 * MIB,
        reserved_bytes=400 * MIB,
        step=1,
        phase=Phase.FORWARD,
        at="train.py:1",
        backward_at="",
        live=(),
    )


def _growing(num_steps=8):
    sizes = [(20 + 4 * place) * MIB for place in range(8)]
    blocks = [allocation_of(size, born=2 * i + 1, died=2 * i + 2) for i, size in enumerate(sizes)]
    steps = [step_of(place + 1, 2 * place + 1, 2 * place + 2) for place in range(num_steps)]
    return capture_of(*blocks, steps=steps)
