"""The largest value that fits, and values that are asked for."""

import pytest

from peaksight.errors import UsageError
from peaksight.planning.sweeping import Sweep
from peaksight.planning.variants import flag_and_values
from peaksight.records.proposals import Outcome


def sweep_over(size_of, *, limit=100, dataset=10**9, **options):
    """A sweep over a script whose peak at a batch is what `size_of` says; it fails beyond a million."""

    def simulate(candidates):
        for candidate in candidates:
            batch = int(candidate.arguments[-1])
            if batch > 10**6:
                yield Outcome(error="the script fails with it")
            else:
                yield Outcome(reserved_bytes=size_of(batch), samples=min(batch, dataset))

    return Sweep(flag="--batch", arguments=("--amp",), limit_bytes=limit, simulate=simulate, **options)


@pytest.mark.parametrize("width", [1, 2, 3])
@pytest.mark.parametrize("largest", [1, 2, 3, 37, 64, 99])
def test_the_largest_that_fits(largest, width):
    """Whatever runs at a time."""
    sweep = sweep_over(lambda batch: batch + 100 - largest, width=width)

    assert sweep.largest() == largest
    assert sweep.tried[str(largest)].candidate.arguments == ("--amp", "--batch", str(largest))


def test_a_peak_that_falls_again():
    """One value that is too large does not end it: another kernel needs less beyond."""
    sweep = sweep_over(lambda batch: 101 if batch == 16 else batch)

    assert sweep.largest() == 100


def test_none_fits():
    """Two values are enough to see it."""
    sweep = sweep_over(lambda batch: 1000)

    assert sweep.largest() is None
    assert len(sweep.tried) == 2
    assert sweep.tried["1"].verdict == "900 B too much"


def test_a_batch_that_is_no_larger():
    """A dataset of 20 samples makes no larger batch, whatever is asked for: doubling ends."""
    sweep = sweep_over(lambda batch: min(batch, 20), dataset=20, width=1)

    assert sweep.largest() == 32
    assert list(sweep.tried) == ["1", "2", "4", "8", "16", "32", "64", "128"]


def test_values_are_tried_once():
    """In their order."""
    sweep = sweep_over(lambda batch: batch)

    assert [tried.fits for tried in sweep.run(["8", "200", "4"])] == [True, False, True]
    assert [tried.fits for tried in sweep.run(["4", "8"])] == [True, True]
    assert list(sweep.tried) == ["8", "200", "4"]


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("batch=2,4", ("--batch", ["2", "4"])),
        ("--batch=2,4", ("--batch", ["2", "4"])),
        ("--batch 2,4", ("--batch", ["2", "4"])),
        ("data.batch=2,4", ("data.batch", ["2", "4"])),
    ],
)
def test_ways_to_write_one_flag(text, expected):
    """A bare name is a flag."""
    assert flag_and_values(text) == expected


def test_more_than_one_flag():
    """Is for --vary."""
    with pytest.raises(UsageError):
        flag_and_values("--batch 2,4 --accum 1,2")


@pytest.mark.parametrize("text", ["batch=", "batch=2,,4"])
def test_a_value_that_is_missing(text):
    """Nothing is tried for it."""
    with pytest.raises(UsageError):
        flag_and_values(text)
