"""The sentences, word by word."""

from dataclasses import replace

import pytest

from helpers import device_of, holder_of, oom_of, peak_of, report_of, step_of
from peaksight.records import Approximation, Category, Gpu, Phase, Retries
from peaksight.reporting import progress_line, stopped_line
from peaksight.reporting.cards import card_answer
from peaksight.reporting.sentences import ending, moment, unknown_size, verdict
from peaksight.units import GIB

WEIGHTS = holder_of(8 * GIB, Category.PARAMETER)
T4 = Gpu(name="Tesla T4", total_bytes=15 * GIB, usable_bytes=14 * GIB)


def test_a_run_that_fits():
    """The predicted peak beside what is usable."""
    assert verdict(report_of(WEIGHTS)) == (
        "Fits an NVIDIA H100 80GB HBM3: predicted peak 8.00 GiB allocated / 8.00 GiB reserved, 79.00 GiB usable."
    )


def test_a_run_that_does_not_fit_says_where_it_fails():
    """What it needs, what the card gives, and line, phase, step and size of the failing request."""
    report = report_of(WEIGHTS, gpu=T4, fits=False, oom=oom_of(3 * GIB))

    assert verdict(report) == (
        "Does not fit: needs 8.00 GiB (predicted); the Tesla T4 gives 14.00 GiB; "
        "fails at train.py:88 in the backward of step 1, asking for 3.00 GiB."
    )


def test_a_failing_backward_names_the_line_that_called_it():
    """The forward's line says what the memory is for, the other is in the traceback."""
    report = report_of(WEIGHTS, fits=False, oom=oom_of(3 * GIB, backward_at="train.py:91"))

    assert "in the backward of step 1, called at train.py:91, asking" in verdict(report)


def test_a_run_that_fits_by_retries():
    """How often the cache was given back, and what would end it."""
    retries = Retries(count=12, steps=(2, 3), head_room_bytes=GIB)

    assert verdict(report_of(WEIGHTS, retries=retries)).endswith(
        "79.00 GiB usable; only by giving cached memory back 12 times in steps 2 and 3, which is slow: "
        "1.00 GiB more would end that."
    )


def test_a_run_that_gets_over_failures():
    """They are the script's own business, and told."""
    assert verdict(report_of(WEIGHTS, caught_ooms=2)).endswith("; the script gets over running out of memory 2 times.")


@pytest.mark.parametrize(("oom", "start"), [(None, "Likely fits a"), (oom_of(GIB), "Likely does not fit:")])
def test_a_close_call_says_likely(oom, start):
    """Both sides of the line have a word for it."""
    assert verdict(report_of(WEIGHTS, gpu=T4, fits=None, oom=oom)).startswith(start)


@pytest.mark.parametrize(
    ("undecided", "end"),
    [
        ((), ", too close to be sure."),
        (("communicator", "fft-workspace"), ", unless for what is not simulated: communicator, fft-workspace."),
    ],
)
def test_why_it_is_only_likely(undecided, end):
    """The card is known too roughly, or some memory of the job is not known."""
    assert verdict(report_of(WEIGHTS, gpu=T4, fits=None, undecided=undecided)).endswith(end)


@pytest.mark.parametrize(
    ("num_bytes", "at_most_bytes", "size"),
    [(GIB, None, "1.00 GiB"), (None, None, "unknown"), (None, 2 * GIB, "up to 2.00 GiB"), (None, 0, "no more")],
)
def test_the_size_of_what_was_not_simulated(num_bytes, at_most_bytes, size):
    """Known, bounded or not known at all."""
    assert unknown_size(Approximation(slug="draws", what="", bytes=num_bytes, at_most_bytes=at_most_bytes)) == size


def test_a_run_cut_short_gives_no_answer():
    """What was seen so far is told as such."""
    report = report_of(WEIGHTS, fits=None, finished="interrupted")

    assert verdict(report).startswith("No answer for an NVIDIA H100 80GB HBM3: predicted peak so far 8.00 GiB")
    assert stopped_line(report, 3).startswith("interrupted after 3 steps: no answer")


def test_a_script_that_never_used_the_card():
    """There is nothing to fit."""
    assert verdict(report_of()) == "Nothing to predict: the script allocated no GPU memory."


def test_a_script_that_failed_in_its_first_step():
    """No step was finished, so no peak is told."""
    assert stopped_line(report_of(WEIGHTS, finished="failed"), 0) == "the script failed in step 1: no answer"
    assert "in step 1 on rank 3: no answer" in stopped_line(
        report_of(WEIGHTS, finished="failed", rank=3, world_size=4), 0
    )


def test_moments():
    """Before the first forward there is no step; without a line there is only the phase."""
    init = peak_of(GIB, reserved_bytes=GIB, phase=Phase.INIT, step=1, at="train.py:3")
    lineless = peak_of(GIB, reserved_bytes=GIB, phase=Phase.OPTIMIZER, at="")

    assert moment(init) == "at train.py:3 before the first forward"
    assert moment(lineless) == "in the optimizer step of step 2"


def test_progress_and_ending():
    """The word predicted stands in every number that was not measured."""
    step = step_of(2, 1, 9, peak_allocated_bytes=GIB, peak_reserved_bytes=2 * GIB)

    assert progress_line(step, 2.14) == "step 2: predicted 1.00 GiB allocated, 2.00 GiB reserved, 2.1 s"
    assert ending(report_of(WEIGHTS)) == "stopped at the steady state after 3 steps"


def test_several_cards():
    """The verdict names the card that decides it, and how many there are."""
    cards = (device_of(0, GIB, usable_bytes=79 * GIB), device_of(1, 2 * GIB, usable_bytes=79 * GIB))
    report = report_of(WEIGHTS, device=1, devices=cards)

    assert verdict(report).startswith("Fits 2 NVIDIA H100 80GB HBM3: predicted peak ")
    assert " reserved on cuda:1, " in verdict(report)
    assert " reserved on cuda:1, " in verdict(replace(report, devices=cards[1:]))
    assert " on cuda" not in verdict(replace(report, device=0, devices=cards[:1]))
    assert [card_answer(replace(cards[0], fits=fits)) for fits in (True, None, False)] == [
        "fits",
        "likely fits",
        "does not fit",
    ]
    assert card_answer(replace(cards[0], fits=None, oom=oom_of(GIB))) == "likely does not fit"
