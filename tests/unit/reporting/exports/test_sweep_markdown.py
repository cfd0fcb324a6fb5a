"""Sweeps in Markdown."""

from peaksight.records import Phase
from peaksight.records.findings import Effect
from peaksight.records.proposals import Candidate, Outcome, Tried
from peaksight.records.sweep import SweepReport, SweptValue
from peaksight.reporting.exports.sweep_markdown import sweep_to_markdown
from peaksight.units import GIB


def swept(value, gib, *, fits=True, error=""):
    candidate = Candidate(kinds=(), title="as it is | all", slots=(), effect=Effect.BITWISE)
    outcome = Outcome(
        allocated_bytes=gib * GIB,
        reserved_bytes=gib * GIB,
        seconds=0.5,
        phase=Phase.BACKWARD,
        step=2,
        at="train.py:9",
        samples=8,
        error=error,
    )
    tried = Tried(candidate=candidate, outcome=outcome, fits=fits)
    return SweptValue(value=value, gpu="t4", limit_bytes=14 * GIB, tried=tried)


def report(asked, *rows, flag="--batch"):
    return SweepReport(argv=("train.py",), asked=asked, flag=flag, rows=rows, best=rows[0], seconds=1.0)


def test_a_row_for_each_value():
    """With what it needs, or why there is no answer."""
    page = sweep_to_markdown(report("sweep", swept("4", 3), swept("8", 0, fits=False, error="fails | here")))

    assert "### peaksight fix: `train.py`\n\n**The last one that fits the 14.00 GiB of t4: --batch 4, " in page
    assert "| --batch | reserved | allocated | a step | samples | a sample | fits |\n|---|---:|---:|" in page
    assert "\n| 4 | 3.00 GiB | 3.00 GiB | 500 ms | 8 | 62.5 ms | yes |\n" in page
    assert "\n| 8 |  |  |  |  |  | fails \\| here |\n" in page


def test_the_plan_on_the_cheapest_card():
    """Is named in its row."""
    page = sweep_to_markdown(report("cheapest", swept("t4", 3), flag="--gpu"))

    assert "| fits | plan |\n" in page
    assert "| yes | as it is \\| all |\n" in page


def test_a_flag_that_the_script_does_not_read():
    """No value is the largest: all come to the same."""
    page = sweep_to_markdown(report("max-batch", swept("1", 3), swept("2", 3)))

    assert "**--batch makes no difference: at each of 2 values the run needs 3.00 GiB of the 14.00 GiB of t4" in page
