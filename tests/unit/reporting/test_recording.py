"""The page of a memory snapshot, in a terminal and on the web."""

import io
from dataclasses import replace

import pytest
from rich.console import Console

from golden_files import compare_golden
from helpers import holder_of, oom_of, peak_of
from helpers_page_numbers import text_of_page
from peaksight.records import Category, Cause, Confidence, Phase, StepReport
from peaksight.records.recording import (
    CurvePoint,
    Fragmentation,
    KnownGpu,
    OtherDevice,
    Pin,
    PinnedSegment,
    RecordingReport,
)
from peaksight.reporting.pages.read_page import answers_to_html
from peaksight.reporting.recording import render_recording
from peaksight.reporting.recording_sentences import happened, moment
from peaksight.units import GIB, MIB

LIVE = (
    holder_of(6 * GIB, Category.ACTIVATION, count=96, source="train.py:40", step=2),
    holder_of(3 * GIB, Category.OPTIMIZER_STATE, count=584, source="train.py:44", phase=Phase.OPTIMIZER),
    holder_of(GIB, Category.GRADIENT, count=292, source="", phase=Phase.BACKWARD),
    holder_of(GIB // 2, Category.OTHER, count=3, source="", phase=Phase.OTHER, step=0),
)
OOM = oom_of(
    800 * MIB,
    allocated_bytes=10 * GIB,
    reserved_bytes=12 * GIB,
    free_bytes=3 * MIB,
    phase=Phase.FORWARD,
    step=2,
    at="train.py:40",
    live=LIVE[:2],
)
FRAGMENTATION = Fragmentation(
    at_failure=True,
    reserved_bytes=12 * GIB,
    allocated_bytes=10 * GIB,
    unused_bytes=2 * GIB,
    inactive_split_bytes=3 * GIB // 2,
    largest_free_bytes=512 * MIB,
    num_segments=40,
    pins=(
        Pin(
            source="train.py:44",
            category="optimizer_state",
            held_bytes=3 * MIB,
            count=2,
            num_segments=2,
            kept_bytes=GIB,
            alone_bytes=900 * MIB,
        ),
        Pin(
            source="no line",
            category="gradient",
            held_bytes=MIB,
            count=1,
            num_segments=1,
            kept_bytes=124 * MIB,
            alone_bytes=0,
        ),
    ),
    segments=(
        PinnedSegment(address=1 << 40, total_bytes=GIB, free_bytes=512 * MIB, holders=("train.py:44", "no line")),
    ),
)
REPORT = RecordingReport(
    schema="peaksight.recording/1",
    file="snapshot.pickle",
    device=1,
    gpu=KnownGpu(name="", total_bytes=None, usable_bytes=12 * GIB + 3 * MIB),
    fits=False,
    peak=peak_of(21 * GIB // 2, reserved_bytes=12 * GIB, step=2, phase=Phase.FORWARD, at="train.py:40"),
    oom=OOM,
    caught_ooms=0,
    steps=(StepReport(peak_allocated_bytes=9 * GIB, peak_reserved_bytes=10 * GIB),),
    live_at_peak=LIVE,
    live_in_libraries=(replace(LIVE[0], source="transformers/activations.py:66"),),
    fragmentation=FRAGMENTATION,
    timeline=tuple(CurvePoint(allocated_bytes=n * GIB // 4, reserved_bytes=n * GIB // 3) for n in range(1, 43)),
    num_events=11824,
    num_allocations=4882,
    before_recording_bytes=GIB // 2,
    allocator_settings="expandable_segments:True",
    other_devices=(OtherDevice(device=0, peak_allocated_bytes=GIB, peak_reserved_bytes=2 * GIB),),
    script="train.py",
    causes=(
        Cause(
            kind="fragmentation",
            title="Reserved memory is in pieces: enough of it is not used, and no piece is large enough",
            confidence=Confidence.CERTAIN,
            evidence=("2.00 GiB of 12.00 GiB are not used, the largest piece has 512.00 MiB",),
            try_first="Make what keeps the segments before the loop, or let go of it earlier.",
        ),
    ),
    run_next="peaksight run --gpu NAME train.py ARGS",
    cannot_tell=("The card, the release of torch, and what the process held outside PyTorch's allocator.",),
)


def page_of(report, *, width=80, encoding="utf-8"):
    """What a terminal shows, without trailing spaces."""
    file = io.TextIOWrapper(io.BytesIO(), encoding=encoding)
    render_recording(report, Console(file=file, width=width, highlight=False))
    file.flush()
    lines = file.buffer.getvalue().decode(encoding).splitlines()
    return "\n".join(line.rstrip() for line in lines) + "\n"


def test_the_page():
    """As a person reads it."""
    compare_golden(page_of(REPORT), "recording-80.txt")


def test_a_plain_terminal():
    """Has ASCII only."""
    assert page_of(REPORT, encoding="ascii").isascii()


def test_what_happened():
    """In one sentence, as far as it is known."""
    went_on, fitting = replace(REPORT, fits=None), replace(REPORT, oom=None, fits=None)
    nowhere = replace(REPORT.peak, step=0, phase=Phase.OTHER, at="")

    assert happened(REPORT).startswith(
        "Ran out of memory at train.py:40 in the forward of step 2: asked for 800.00 MiB"
    )
    assert happened(REPORT).endswith("; 2.00 GiB were reserved and not used, in pieces of up to 512.00 MiB.")
    assert happened(went_on).startswith("Ran out of memory and went on at train.py:40")
    assert happened(fitting) == (
        "Recorded peak 10.50 GiB allocated / 12.00 GiB reserved, at train.py:40 in the forward of step 2."
    )
    assert happened(replace(fitting, peak=nowhere)) == "Recorded peak 10.50 GiB allocated / 12.00 GiB reserved."


@pytest.mark.parametrize(
    ("phase", "at", "words"),
    [
        (Phase.FORWARD, "train.py:40", "at train.py:40 in the forward"),
        (Phase.BACKWARD, "", "in the backward"),
        (Phase.OTHER, "train.py:40", "at train.py:40"),
        (Phase.OTHER, "", ""),
        (Phase.SAVE, "", "while saving"),
    ],
)
def test_moments_without_steps(phase, at, words):
    """Name no step."""
    assert words == moment(replace(REPORT.peak, step=0, phase=phase, at=at))


def test_the_web_page():
    """Has what the terminal has."""
    page = text_of_page(answers_to_html([REPORT]))

    for text in ("Ran out of memory", "train.py:44", "(backward pass, without a line)", "cuda:0", "no line", "usable"):
        assert text in page
    assert "usable" not in text_of_page(answers_to_html([replace(REPORT, gpu=replace(REPORT.gpu, usable_bytes=None))]))
