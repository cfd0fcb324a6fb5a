"""A person's terminal: progress in a line that stays in place, sentences wrapped, colours unless they are unwanted."""

import io
import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

from peaksight.cli.output import Output, Tried

pty = pytest.importorskip("pty")

MLP = Path(__file__).parents[1] / "scripts" / "mlp.py"
COLUMNS = 80


def shown(*words, **variables):
    """What a terminal of 80 columns gets from a command."""
    ours, theirs = pty.openpty()
    environment = {name: value for name, value in os.environ.items() if name not in ("NO_COLOR", "COLUMNS")}
    environment |= {"TERM": "xterm-256color", "COLUMNS": str(COLUMNS), **variables}
    command = [sys.executable, "-m", "peaksight", *map(str, words)]
    process = subprocess.Popen(command, stdin=theirs, stdout=theirs, stderr=theirs, env=environment)
    os.close(theirs)
    received = b""
    with open(ours, "rb", buffering=0) as stream:
        try:
            while chunk := stream.read(4096):
                received += chunk
        except OSError:  # Linux says so where nobody writes any more
            pass
    process.wait(300)
    return received.decode().replace("\r\n", "\n")


def left_of(screen):
    """What stays to be read: a line that was drawn in place is erased by what follows it."""
    without = re.sub(r"\r\x1b\[2K[^\r\n]*\r(?=\x1b\[2K|\r\x1b\[2K)", "", screen)
    return re.sub(r"\x1b\[[0-9;]*[mK]", "", without)


@pytest.mark.torch
def test_progress_stays_in_place():
    """A step after another is drawn, nothing of them is left, and no line is wider than the terminal."""
    screen = shown("run", "--gpu", "t4", MLP)
    left = left_of(screen)

    assert screen.count("\r\x1b[2Kpeaksight: step ") == 3
    assert "peaksight: step" not in left
    assert "step 1 loss 1.0\n" in left
    assert re.search(r"\x1b\[[0-9;]*3[0-9]m", screen)
    assert [] == [line for line in left.split("\n") if len(line) > COLUMNS]


@pytest.mark.parametrize("variables", [{"TERM": "dumb"}, {"NO_COLOR": "1"}], ids=" ".join)
def test_without_colour(variables):
    """A terminal that knows none, or a person who wants none."""
    screen = shown("gpus", **variables) + shown("explain", "no-such-rule", **variables)

    assert not re.search(r"\x1b\[[0-9;]*[34][0-9]m", screen)
    assert "TERM" not in variables or "\x1b" not in screen


@pytest.mark.torch
def test_a_terminal_that_knows_no_escape_sequences():
    """Progress is told in lines, as in a log."""
    screen = shown("run", "--gpu", "t4", MLP, TERM="dumb")

    assert screen.count("\npeaksight: step ") == 3
    assert "\x1b" not in screen


def test_an_error_is_wrapped_at_words():
    """On a terminal; in a log it is one line."""
    screen = shown("run", "--gpu", "no-such-card", MLP)

    assert len(screen.splitlines()) > 1
    assert all(len(line) <= COLUMNS for line in screen.splitlines())
    assert " See docs/messages.md#unknown-gpu." in screen.replace("\n", " ")


def test_a_log_of_many_steps(monkeypatch):
    """The first ones, and then ever fewer."""
    log = io.StringIO()
    monkeypatch.setattr(sys, "stderr", log)
    output = Output()
    for step in range(1, 231):
        output.progress(f"step {step}", step)
    tried = Tried(output)
    for title in "abcde":
        tried(title)

    told = [line.removeprefix("peaksight: ") for line in log.getvalue().splitlines()]
    assert told[:10] == [f"step {step}" for step in (1, 2, 3, 5, 10, 20, 50, 100, 200)] + ["tried 1: a"]
    assert told[10:] == ["tried 2: b", "tried 3: c", "tried 5: e"]


def test_quiet_output(monkeypatch):
    """Neither notes nor progress; what is wrong stays."""
    log = io.StringIO()
    monkeypatch.setattr(sys, "stderr", log)
    output = Output(quiet=True)
    output.say("Wrote report.json")
    output.progress("step 1", 1)
    output.warn("the plan changed nothing")

    assert log.getvalue() == "peaksight: the plan changed nothing\n"
