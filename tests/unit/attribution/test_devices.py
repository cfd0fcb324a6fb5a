"""The report of a run on several cards."""

import pytest

from helpers import allocation_of, capture_of, failure_of, step_of
from peaksight.attribution import report_on
from peaksight.gpus import find_card, room_on
from peaksight.records import Action, AllocatorCall
from peaksight.units import GIB, MIB

H100 = room_on(find_card("h100-80gb"))


def holding(num_bytes, device, **about):
    """A run that takes `num_bytes` of card number `device`."""
    return capture_of(allocation_of(num_bytes, born=1), steps=[step_of(1, 1, 1)], device=device, **about)


def failing(device, **about):
    """A run that ends because card number `device` has no room for 90 GiB."""
    facts = {"failures": (failure_of(90 * GIB, tick=1, **about),), "fatal": 0, "finished": "failed", "script_exit": 1}
    return holding(GIB, device, **facts)


def test_the_fullest_card_is_the_one_that_is_told_of():
    """All fit: the one with the least head room comes first, the others have a row."""
    report = report_on([holding(GIB, 0), holding(3 * GIB, 1), holding(2 * GIB, 2)], H100)

    assert (report.fits, report.device, report.peak.allocated_bytes) == (True, 1, 3 * GIB)
    assert [(row.index, row.fits, row.peak.allocated_bytes) for row in report.devices] == [
        (0, True, GIB),
        (1, True, 3 * GIB),
        (2, True, 2 * GIB),
    ]


def test_what_is_left_counts_not_what_is_held():
    """Libraries that took most of the second card leave it less room than the first has."""
    taken = 60 * GIB
    outside = {"outside_bytes": taken, "calls": (AllocatorCall(tick=2, action=Action.OUTSIDE, bytes=taken),)}
    report = report_on([holding(10 * GIB, 0), holding(GIB, 1, **outside)], H100)

    assert report.device == 1


def test_the_card_that_fails_comes_first():
    """However full the others are; what the job needs is that of the run without a limit, on each."""
    first = [holding(40 * GIB, 0, finished="failed", script_exit=1), failing(1)]
    unlimited = [holding(70 * GIB, 0), holding(95 * GIB, 1), holding(85 * GIB, 2)]
    report = report_on(first + unlimited, H100)

    assert (report.fits, report.device, report.oom.device) == (False, 1, 1)
    assert [row.fits for row in report.devices] == [True, False, False]
    assert [row.oom is None for row in report.devices] == [True, False, True]
    assert [row.peak.allocated_bytes for row in report.devices] == [70 * GIB, 95 * GIB, 85 * GIB]
    assert report.devices[1].oom.live == ()


@pytest.mark.parametrize("device", [0, 1, 2])
def test_the_second_run_begins_where_the_cards_do(device):
    """It uses every card that the first one did, so that its first card is not after the last of that."""
    first = [failing(device)]
    report = report_on(first + [holding(95 * GIB, index) for index in range(device + 1)], H100)

    assert report.device == device
    assert report.peak.allocated_bytes == 95 * GIB
    assert len(report.devices) == device + 1


def test_failures_that_the_script_got_over_are_counted_on_all_cards():
    """Three of them, on two cards."""
    caught = failure_of(90 * GIB, tick=1)
    report = report_on([holding(GIB, 0, failures=(caught,)), holding(MIB, 1, failures=(caught, caught))], H100)

    assert report.caught_ooms == 3


def test_one_card():
    """Nothing else than before, but for a row of its own."""
    report = report_on([holding(GIB, 0)], H100)

    assert report.device == 0
    assert len(report.devices) == 1
