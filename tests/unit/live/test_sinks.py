"""Where records go, without a library."""

import io
import sys

from peaksight.live.process import this_process
from peaksight.live.sinks.in_place import InPlace
from peaksight.live.sinks.seldom import Seldom
from peaksight.live.sinks.terminal import TerminalSink
from peaksight.records.watched import WatchedEvent, WatchedStep
from peaksight.units import GIB
from tests.helpers_live import Kept


def step_of(step, **about):
    return WatchedStep(**({"step": step, "time": 0.0, "seconds": 0.1, "device": 0} | about))


def test_seldom_keeps_the_highest_peaks():
    """GIVEN steps within a second, THEN one of them is shown, with what happened in all; the rest at the end."""
    now, kept = [0.0], Kept()
    seldom = Seldom(kept, seconds=1.0, clock=lambda: now[0])
    for number, (now[0], peak) in enumerate([(0.0, 1), (0.2, 9), (0.4, 3), (1.1, 2), (1.2, 5)], 1):
        seldom.write(step_of(number, peak_allocated_bytes=peak, retries=1))
    seldom.close()

    assert [(s.step, s.peak_allocated_bytes, s.retries) for s in kept.of(WatchedStep)] == [
        (1, 1, 1),
        (4, 9, 3),
        (5, 5, 1),
    ]


def test_the_lines_of_a_log(monkeypatch):
    """The first steps, one a minute, and every event."""
    now, log = [0.0], io.StringIO()
    monkeypatch.setattr(sys, "stderr", log)
    terminal = TerminalSink(this_process(()), clock=lambda: now[0])
    for number, now[0] in enumerate([0.0, 1.0, 2.0, 3.0, 70.0], 1):
        terminal.write(step_of(number, peak_allocated_bytes=2 * GIB, peak_reserved_bytes=3 * GIB, free_bytes=GIB))
    terminal.write(WatchedEvent(kind="retry", step=5, time=0.0, text="the card was full"))
    terminal.close()

    assert log.getvalue().splitlines() == [
        "peaksight: step 1 in 0.10 s: peak 2.00 GiB allocated, 3.00 GiB reserved, 1.00 GiB free",
        "peaksight: step 2 in 0.10 s: peak 2.00 GiB allocated, 3.00 GiB reserved, 1.00 GiB free",
        "peaksight: step 5 in 0.10 s: peak 2.00 GiB allocated, 3.00 GiB reserved, 1.00 GiB free",
        "peaksight: step 5: the card was full",
    ]


def test_other_ranks_tell_only_what_goes_wrong(monkeypatch):
    """With their number."""
    log = io.StringIO()
    monkeypatch.setattr(sys, "stderr", log)
    monkeypatch.setenv("RANK", "1")
    monkeypatch.setenv("WORLD_SIZE", "2")
    terminal = TerminalSink(this_process(()))
    terminal.write(step_of(1))
    terminal.write(WatchedEvent(kind="retry", step=1, time=0.0, text="the card was full"))

    assert log.getvalue() == "peaksight [rank 1]: step 1: the card was full\n"


def test_a_line_in_place(monkeypatch):
    """The script's own lines take its place; one that is not finished, as a progress bar, is left alone."""
    screen = io.StringIO()
    monkeypatch.setattr(sys, "stdout", screen)
    monkeypatch.setattr(sys, "stderr", screen)
    line = InPlace()
    line.draw("step 1")
    print("loss 0.5")
    sys.stderr.write("\r10%")
    line.draw("step 2")
    sys.stderr.write("\r100%\n")
    line.draw("step 3")
    line.close()

    assert screen.getvalue() == "\r\x1b[2Kstep 1\r\x1b[2Kloss 0.5\n\r10%\r100%\n\r\x1b[2Kstep 3\r\x1b[2K"
    assert sys.stdout is screen
