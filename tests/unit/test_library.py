"""The options of the library are those of the command line."""

from peaksight.library import option_words


def test_flags_and_values():
    """A flag has no value, and is left out where it is False."""
    options = {"gpu": "t4", "steps": 0, "reserved_by_others": "1GiB", "worst_batch": True, "force": False}

    assert ["--gpu", "t4", "--steps", "0", "--reserved-by-others", "1GiB", "--worst-batch"] == option_words(options)
