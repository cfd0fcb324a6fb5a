"""What becomes of scripts on a full card: the run with a limit, judged."""

from dataclasses import replace
from pathlib import Path

import pytest

from peaksight.attribution import build_report
from peaksight.gpus import find_card, room_on
from peaksight.records import ScriptCommand
from peaksight.units import GIB, MIB
from peaksight.virtual_gpu import simulate

pytestmark = pytest.mark.torch

SCRIPT = Path(__file__).parents[1] / "scripts" / "full_card.py"


def report_on(*words, usable_bytes=GIB, **options):
    """The report of the first run of the script on an H100 that gives `usable_bytes`."""
    card = find_card("h100-80gb")
    room = room_on(replace(card, total_bytes=usable_bytes + card.context_bytes))
    return build_report(simulate(ScriptCommand(target=str(SCRIPT), args=words), room, **options)[0], room)


@pytest.mark.parametrize(("how", "count"), [("halve", 2), ("skip", 3)])
def test_what_is_caught_and_followed_by_training_is_no_failure(how, count):
    """Nor are its vain attempts to make room a retry."""
    report = report_on(how)

    assert (report.finished, report.oom, report.caught_ooms, report.retries) == ("steady", None, count, None)


@pytest.mark.parametrize("exit_code", ["0", "1"])
def test_what_is_caught_and_followed_by_nothing_is_the_failure(exit_code):
    """Whatever code the script ends with."""
    report = report_on("advise", exit_code)

    assert (report.oom.requested_bytes, report.caught_ooms) == (480 * MIB, 0)


def test_a_search_that_finds_nothing_fails_with_the_last_that_it_tried():
    """Although its last words are about something else."""
    report = report_on("exhaust")

    assert (report.oom.requested_bytes, report.caught_ooms) == (32 * MIB, 3)


def test_a_script_that_only_searches_ends_as_it_should():
    """What did not fit was the end of the search."""
    report = report_on("probe")

    assert (report.finished, report.oom, report.caught_ooms) == ("script", None, 1)
    assert len(report.steps) == 4


def test_a_search_without_a_limit_is_stopped():
    """It would not end, at sizes that no card holds."""
    report = report_on("probe", max_failures=0)

    assert report.finished == "unsteady"
    assert report.peak.allocated_bytes < 32 * GIB


def test_so_much_more_memory_ends_the_retries():
    """A card that is full in every step; 4 MiB less than the head room do not end that."""
    retries = report_on("retry").retries

    assert retries.steps == (1, 2, 3)
    assert report_on("retry", usable_bytes=GIB + retries.head_room_bytes).retries is None
    assert report_on("retry", usable_bytes=GIB + retries.head_room_bytes - 4 * MIB).retries is not None
