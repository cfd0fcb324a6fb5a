"""Causes out of a memory snapshot."""

from dataclasses import replace

from helpers import holder_of, oom_of, peak_of
from peaksight.diagnosis.recordings import diagnosed
from peaksight.records import Category, Phase
from peaksight.records.recording import Fragmentation, KnownGpu, Pin, RecordingReport
from peaksight.units import GIB, MIB

UNUSED = Fragmentation(
    at_failure=True,
    reserved_bytes=12 * GIB,
    allocated_bytes=11 * GIB,
    unused_bytes=GIB,
    inactive_split_bytes=GIB,
    largest_free_bytes=300 * MIB,
    num_segments=9,
    pins=(
        Pin(
            source="train.py:9",
            category="input",
            held_bytes=MIB,
            count=1,
            num_segments=1,
            kept_bytes=GIB,
            alone_bytes=GIB,
        ),
    ),
    segments=(),
)


def report_of(*live, requested=2 * GIB, phase=Phase.FORWARD, step=3, settings="", failed=True):
    """A report of a failure in `step`, at which `live` was alive in 11 GiB."""
    oom = oom_of(requested, allocated_bytes=11 * GIB, reserved_bytes=12 * GIB, phase=phase, step=step, live=live)
    return RecordingReport(
        schema="",
        file="snapshot.pickle",
        device=0,
        gpu=KnownGpu(name="", total_bytes=None, usable_bytes=12 * GIB),
        fits=False if failed else None,
        peak=peak_of(11 * GIB, reserved_bytes=12 * GIB, step=step),
        oom=oom if failed else None,
        caught_ooms=0,
        steps=(),
        live_at_peak=live,
        live_in_libraries=(),
        fragmentation=UNUSED,
        timeline=(),
        num_events=1,
        num_allocations=1,
        before_recording_bytes=0,
        allocator_settings=settings,
        other_devices=(),
        script="train.py",
        cannot_tell=(),
    )


def kinds(report):
    return [cause.kind for cause in diagnosed(report).causes]


def activation(num_bytes, *, step, source="train.py:5"):
    return holder_of(num_bytes, Category.ACTIVATION, source=source, step=step)


def test_one_tensor_too_large():
    """For an empty card."""
    assert ["single-huge-tensor"] == kinds(report_of(requested=13 * GIB))


def test_pieces():
    """What is not used would have served the request; what keeps it is named, and expandable segments if not tried."""
    (cause,) = diagnosed(report_of(requested=GIB)).causes

    assert "fragmentation" == cause.kind
    assert "1.00 GiB are kept by 1.00 MiB of train.py:9" == cause.evidence[1]
    assert "expandable_segments:True" in cause.try_first

    (cause,) = diagnosed(report_of(requested=GIB, settings="expandable_segments:True")).causes

    assert "expandable_segments" not in cause.try_first


def test_a_leak():
    """Activations of several earlier steps, also where nothing failed."""
    live = activation(GIB, step=1), activation(GIB, step=2), activation(GIB, step=3)
    (cause,) = diagnosed(report_of(*live, failed=False)).causes

    assert "memory-grows-over-steps" == cause.kind
    assert "2.00 GiB of 2 earlier steps" in cause.title
    assert ("2.00 GiB at train.py:5",) == cause.evidence


def test_outputs_that_are_not_let_go():
    """Those of the last step only; a little is nothing."""
    assert ["varying-sizes-or-two-steps-alive"] == kinds(report_of(activation(9 * GIB, step=2)))
    assert [] == kinds(report_of(activation(MIB, step=2)))
    assert [] == kinds(report_of(activation(GIB, step=3)))


def test_what_dominates():
    """At a failure: more than half of what is allocated."""
    state = holder_of(6 * GIB, Category.OPTIMIZER_STATE, source="train.py:9", phase=Phase.OPTIMIZER)

    assert ["activations-batch"] == kinds(report_of(activation(6 * GIB, step=3)))
    assert ["model-state-too-big"] == kinds(report_of(state))
    assert [] == kinds(report_of(state, failed=False))
    assert ["optimizer-state-first-step", "model-state-too-big"] == kinds(
        report_of(state, phase=Phase.OPTIMIZER, step=1)
    )


def test_lines_of_libraries_are_evidence():
    """They say more than the one line of the script that calls the model."""
    live = activation(6 * GIB, step=3)
    inside = replace(live, source="transformers/activations.py:66")
    (cause,) = diagnosed(replace(report_of(live), live_in_libraries=(inside,))).causes

    assert cause.evidence[1:] == (
        "6.00 GiB at train.py:5",
        "6.00 GiB at transformers/activations.py:66 (at the peak)",
    )


def test_what_to_run_next():
    """Names the script."""
    assert "peaksight run --gpu NAME train.py ARGS" == diagnosed(report_of()).run_next
