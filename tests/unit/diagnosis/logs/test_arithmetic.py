"""What figures add up to, and who holds the card."""

import io

from peaksight.diagnosis.logs.accounts import account_of
from peaksight.diagnosis.logs.arithmetic import check_message
from peaksight.postmortem import read_log
from peaksight.units import GIB

NEW = (
    "CUDA out of memory. Tried to allocate {asked}. GPU 0 has a total capacity of {capacity} GiB of which {free} is "
    "free. "
    "{processes} Of the allocated memory {allocated} GiB is allocated by PyTorch, and {idle} is reserved by PyTorch "
    "but "
    "unallocated."
)


def message(**figures):
    defaults = {
        "asked": "1.00 GiB",
        "capacity": "24.00",
        "free": "500.00 MiB",
        "allocated": "20.00",
        "idle": "1.00 GiB",
    }
    text = NEW.format(**(defaults | {"processes": ""} | figures))
    (found,) = read_log(io.BytesIO(text.encode()), "text").messages
    return found


def checks(**figures):
    return {check.name: check for check in check_message(message(**figures))}


def test_more_free_than_asked_is_a_contradiction():
    """It is no plain shortage."""
    check = checks(free="5.35 GiB", asked="1.34 GiB")["free-but-refused"]

    assert not check.holds
    assert check.text == "5.35 GiB free, 1.34 GiB asked: not a plain shortage."


def test_a_near_miss_is_a_shortage():
    """Within the rounding of the printed figures too."""
    assert "near miss, by 10.24 MiB" in checks(free="6.47 GiB", asked="6.48 GiB")["shortage"].text
    assert "free-but-refused" not in checks(free="1.00 GiB", asked="1.00 GiB")


def test_fragmentation_is_ruled_out_or_left_open():
    """Idle memory that would be enough proves nothing."""
    assert "not-fragmentation" in checks(asked="4.00 GiB")
    assert "does not prove" in checks(asked="1.00 GiB")["idle-in-pieces"].text


def test_a_process_that_is_this_one():
    """Its pid is that outside the container: there is no room for both."""
    account = account_of(message(processes="Process 77 has 23.40 GiB memory in use."))

    assert (account.own_as, account.others) == (77, ())


def test_a_process_that_is_another():
    """It holds more than this one's figures explain, and both fit the card."""
    account = account_of(
        message(
            processes="Process 77 has 20.00 GiB memory in use. Including non-PyTorch memory, this process has 3.40 GiB "
            "memory in use.",
            allocated="2.00",
        )
    )

    assert account.own_as is None
    assert 20 * GIB == account.others_bytes


def test_what_is_missing_from_the_card_is_held_elsewhere():
    """By processes that the message does not list."""
    own = "Including non-PyTorch memory, this process has 10.00 GiB memory in use."
    check = checks(processes=own, allocated="9.00", idle="0 bytes")["held-elsewhere"]

    assert "13.51 GiB held elsewhere: processes that are not listed" in check.text


def test_sizes_that_do_not_fit_the_card():
    """More in use than there is."""
    own = "Including non-PyTorch memory, this process has 30.00 GiB memory in use."

    assert not checks(processes=own)["more-than-capacity"].holds


def test_two_to_the_64_is_no_size():
    """It is named, and nothing is computed from it."""
    own = "Including non-PyTorch memory, this process has 17179869184.00 GiB memory in use."

    assert "2^64" in checks(processes=own)["sentinel"].text
