"""The recorder: a line a step, and no way to harm the script."""

import os

from peaksight.live.sinks.lines import LinesSink
from peaksight.records.watched import WatchedCard, WatchedEnd, WatchedEvent, WatchedStep
from peaksight.records.watched_file import read_watched
from tests.helpers_live import Kept, MadeUpCard, figures_of, recorder_of


def test_a_line_for_each_step():
    """With what was counted in it alone; the card is named once."""
    kept = Kept()
    recorder = recorder_of(MadeUpCard([figures_of(100, retries=3)], [figures_of(200, retries=5)]), kept)
    recorder.step()
    recorder.step()

    assert [(step.step, step.peak_allocated_bytes, step.retries) for step in kept.of(WatchedStep)] == [
        (1, 100, 3),
        (2, 200, 2),
    ]
    assert len(kept.of(WatchedCard)) == 1


def test_a_script_that_has_torch_count_anew():
    """`reset_accumulated_memory_stats` does not make retries negative."""
    kept = Kept()
    recorder = recorder_of(MadeUpCard([figures_of(retries=3)], [figures_of(retries=1)]), kept)
    recorder.step()
    recorder.step()

    assert [step.retries for step in kept.of(WatchedStep)] == [3, 1]


def test_several_cards():
    """Each has a line of each step."""
    kept = Kept()
    recorder = recorder_of(MadeUpCard([figures_of(1), figures_of(2, device=1)]), kept)
    recorder.step()

    assert [(step.device, step.allocated_bytes) for step in kept.of(WatchedStep)] == [(0, 1), (1, 2)]


def test_the_driver_is_asked_once_a_second():
    """And when the card was full."""
    now = [0.0]
    card = MadeUpCard([figures_of()], [figures_of()], [figures_of(retries=1)], [figures_of(retries=1)])
    kept = Kept()
    recorder = recorder_of(card, kept, clock=lambda: now[0])
    for now[0] in (1.0, 1.5, 1.6, 2.1):
        recorder.step()

    assert [step.free_bytes is not None for step in kept.of(WatchedStep)] == [True, False, True, True]


def test_without_a_card_it_is_said_once():
    """Steps are counted all the same."""
    kept = Kept()
    recorder = recorder_of(MadeUpCard([]), kept)
    for _ in range(5):
        recorder.step()

    assert len(kept.of(WatchedStep)) == 5
    assert [event.kind for event in kept.of(WatchedEvent)] == ["no-card"]


def test_a_sink_that_fails_is_dropped():
    """With one message; the others go on."""

    class Full(Kept):
        name = "the disk"

        def write(self, line):
            raise OSError(28, "No space left on device")

    kept, said = Kept(), []
    recorder = recorder_of(MadeUpCard([figures_of()]), Full(), kept, said=said)
    recorder.step()
    recorder.step()

    assert len(kept.of(WatchedStep)) == 2
    assert said == ["the disk is no longer written: No space left on device; the script goes on, and so does the rest"]


def test_figures_that_fail_end_the_recording_only():
    """Said once."""
    said = []
    recorder = recorder_of(MadeUpCard(), said=said)
    recorder.step()
    recorder.step()

    assert len(said) == 1
    assert "the script goes on" in said[0]


def test_the_first_end_counts():
    """A context that is left after the script has ended says nothing more."""
    kept = Kept()
    recorder = recorder_of(MadeUpCard([]), kept)
    recorder.end(3)
    recorder.end(0)

    assert [end.exit_code for end in kept.of(WatchedEnd)] == [3]
    assert kept.lines[-1] == "closed"


def test_a_forked_child_writes_nothing(tmp_path):
    """Its steps are not those of the process that is watched."""
    recorder = recorder_of(MadeUpCard([]))
    lines = LinesSink(tmp_path, recorder.process)
    recorder.sinks.append(lines)
    recorder.step()
    child = os.fork()
    if child == 0:
        recorder.step()
        recorder.end(1)
        os._exit(0)
    os.waitpid(child, 0)
    recorder.end(0)
    watched = read_watched(lines.path)

    assert [step.step for step in watched.steps] == [1]
    assert watched.end.exit_code == 0
