"""`--vary`: what other arguments it means, and what it cannot mean."""

import pytest

from peaksight.errors import UsageError
from peaksight.planning.variants import variants_of


def words(arguments, *texts):
    """The arguments of each variant, as one would type them."""
    return [" ".join(variant.arguments) for variant in variants_of(tuple(arguments.split()), texts)]


def test_values_that_belong_together():
    """The flag is changed where it stands, or added; what stands already is no variant."""
    assert words("--batch 8 --amp", "--batch 8,4,2 --accum 1,2,4") == [
        "--batch 8 --amp --accum 1",
        "--batch 4 --amp --accum 2",
        "--batch 2 --amp --accum 4",
    ]
    assert words("--batch 8", "--batch 8,4") == ["--batch 4"]


@pytest.mark.parametrize(
    ("arguments", "text", "expected"),
    [
        ("--batch=8 -v", "--batch 4", "--batch=4 -v"),
        ("--batch 8 --batch 16", "--batch=4", "--batch 8 --batch 4"),
        ("data.batch=8", "data.batch=4", "data.batch=4"),
        ("", "data.batch=4", "data.batch=4"),
        ("-b 8", "-b 4", "-b 4"),
    ],
)
def test_ways_to_write_a_flag(arguments, text, expected):
    """As the command has it; the last one counts, as for a parser."""
    assert words(arguments, text) == [expected]


def test_several_texts_add_up():
    """Each variant once."""
    assert words("--batch 8", "--batch 4 --accum 2", "--batch 4,2 --accum 2,4") == [
        "--batch 4 --accum 2",
        "--batch 2 --accum 4",
    ]


def test_values_of_other_lengths():
    """What is missing cannot be guessed."""
    with pytest.raises(UsageError, match="3 of --batch, 2 of --accum"):
        variants_of((), ["--batch 8,4,2 --accum 1,2"])


@pytest.mark.parametrize("text", ["", "--batch", "batch 8"])
def test_no_values(text):
    """A flag and its values are needed."""
    with pytest.raises(UsageError, match="name a flag of the script and its values"):
        variants_of((), [text])
