"""The card as a bar."""

from hypothesis import given
from hypothesis import strategies as st

from helpers import allocation_of, capture_of, failure_of, step_of
from peaksight.attribution import build_report
from peaksight.gpus import find_card, room_on
from peaksight.records import Action, AllocatorCall, Role
from peaksight.units import GIB, MIB

ORDER = (
    *("parameter", "gradient", "optimizer_state", "activation", "temporary", "input", "buffer", "workspace"),
    *("communication", "other", "unallocated", "context", "libraries", "other_processes", "withheld", "free"),
)
T4 = find_card("t4")


def budget(capture, room, unlimited=None):
    """The parts of the card by name, and by how much they are too many."""
    found = build_report(capture, room, unlimited).budget
    return {part.part: part.bytes for part in found.parts}, found.over_bytes


def run_of(num_bytes, **about):
    """A run of one parameter and a smaller block that is given back."""
    return capture_of(
        allocation_of(num_bytes, born=1, role=Role.PARAMETER), allocation_of(30 * MIB, born=2, died=3), **about
    )


def test_what_fits_leaves_some_free():
    """A block of the pool of large ones is cut from 20 MiB: what is left of it is not allocated."""
    room = room_on(T4, others_bytes=GIB)
    parts, over = budget(capture_of(allocation_of(4 * MIB, born=1, role=Role.PARAMETER), outside_bytes=50 * MIB), room)

    assert parts == {
        "parameter": 4 * MIB,
        "unallocated": 16 * MIB,
        "context": room.context_bytes,
        "libraries": 50 * MIB,
        "other_processes": GIB,
        "free": T4.total_bytes - room.context_bytes - GIB - 70 * MIB,
    }
    assert over == 0


def test_what_does_not_fit_is_over():
    """It is what the run without a limit needs more than there is."""
    room = room_on(T4)
    failed = capture_of(failures=(failure_of(20 * GIB, tick=0),), fatal=0, finished="failed")
    parts, over = budget(failed, room, run_of(20 * GIB))

    assert "free" not in parts
    assert over == 20 * GIB + 30 * MIB + room.context_bytes - T4.total_bytes


def test_what_the_script_does_not_allow_is_withheld():
    """A memory fraction leaves the card half empty, and the run still does not fit."""
    room = room_on(T4)
    cap = (AllocatorCall(tick=0, action=Action.ALLOWED, bytes=4 * GIB),)
    failed = capture_of(failures=(failure_of(5 * GIB, tick=0),), fatal=0, finished="failed", calls=cap)
    parts, over = budget(failed, room, run_of(5 * GIB, calls=cap))

    assert parts["withheld"] == room.usable_bytes - 4 * GIB
    assert ("free" not in parts, over) == (True, GIB + 30 * MIB)


def test_a_cache_that_can_be_given_back_is_not_over():
    """Another card had no room for this run, and without a limit it keeps more than this one has."""
    room = room_on(T4)
    failed = capture_of(device=1)
    most = room.usable_bytes - 100 * MIB
    whole = capture_of(
        allocation_of(most // 2, born=1, died=2, stream=0),
        allocation_of(most, born=3, role=Role.PARAMETER),
        steps=[step_of(1, 1, 3)],
    )
    parts, over = budget(failed, room, whole)

    assert whole.peak_reserved_bytes > room.usable_bytes
    assert (over, parts["unallocated"]) == (0, room.usable_bytes - whole.peak_allocated_bytes)


def test_the_pool_of_jax_is_reserved_whole():
    """A quarter of the card is left out of it; it is taken at the start, or as needed."""
    room, pool = room_on(T4), 3 * T4.total_bytes // 4
    taken, _ = budget(run_of(GIB, pool_bytes=pool, preallocated=True), room)
    grown, _ = budget(run_of(GIB, pool_bytes=pool), room)

    assert taken["unallocated"] == pool - GIB - 30 * MIB
    assert taken["withheld"] == grown["withheld"] == room.usable_bytes - pool
    assert "free" not in taken
    assert grown["free"] == pool - GIB - 30 * MIB


def test_more_than_the_pool_of_jax_is_over():
    """What is outside of it is no help."""
    pool = 3 * T4.total_bytes // 4
    _, over = budget(run_of(pool, pool_bytes=pool, preallocated=True), room_on(T4))

    assert over >= 30 * MIB


@given(
    sizes=st.lists(st.tuples(st.integers(1, 6 << 30), st.sampled_from(Role)), max_size=8),
    outside=st.integers(0, 2 * GIB),
    others=st.integers(0, 20 * GIB),
    cap=st.integers(0, 20 * GIB),
    failed=st.booleans(),
)
def test_the_parts_add_up(sizes, outside, others, cap, failed):
    """Whatever the card has to hold, in one order, and either something is free or too much is asked."""
    blocks = (allocation_of(size, born=born, role=role) for born, (size, role) in enumerate(sizes, start=1))
    calls = (AllocatorCall(tick=0, action=Action.ALLOWED, bytes=cap),)
    whole = capture_of(*blocks, outside_bytes=outside, calls=calls)
    run = capture_of(failures=(failure_of(GIB, tick=0),), fatal=0, calls=calls) if failed else whole
    report = build_report(run, room_on(T4, others_bytes=others), whole if failed else None)
    found, names = report.budget, [part.part for part in report.budget.parts]

    assert sum(part.bytes for part in found.parts) == found.total_bytes + found.over_bytes
    assert names == [part for part in ORDER if part in names]
    assert all(part.bytes > 0 for part in found.parts)
    assert not (found.over_bytes and "free" in names)
