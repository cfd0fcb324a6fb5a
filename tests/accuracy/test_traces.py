"""The tools that look for the cause of a difference in recorded traces."""

from benchmarks.accuracy.addresses import RULES, reserved_bytes
from benchmarks.accuracy.events import Event, differences, measured_events
from benchmarks.accuracy.workloads import PREDICTED_FIRST
from peaksight.allocator import read_trace, replay

SEQ2SEQ = PREDICTED_FIRST / "traces" / "kinds-seq2seq-h200.trace.json.gz"


def events_of(*sizes):
    return [Event("alloc", size, "") for size in sizes]


def test_events_part_where_one_side_has_more():
    """Each hunk ends where both go on alike."""
    hunks = list(differences(events_of(1, 2, 9, 3, 4, 5, 6), events_of(1, 2, 3, 4, 5, 6)))

    assert [[line.split()[0] for line in hunk] for hunk in hunks] == [["@@", "-"]]
    assert "9" in hunks[0][1]


def test_events_alike_do_not_part():
    """Nothing is listed for a trace beside itself."""
    events = measured_events(SEQ2SEQ)

    assert len(events) > 10_000
    assert not list(differences(events, events))


def test_addresses_alone_change_what_is_reserved():
    """The same requests reserve 10.9 % more or as much as measured: the order of the segments decides."""
    events = read_trace(SEQ2SEQ)
    measured = replay(events)

    assert measured.wrong_addresses == 0
    assert reserved_bytes(events, RULES["upwards"]()) == measured.peak_reserved
    assert reserved_bytes(events, RULES["as the driver"]()) > 1.1 * measured.peak_reserved
