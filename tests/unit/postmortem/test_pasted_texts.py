"""Texts as people paste them: quoted, coloured, cut short, from other systems."""

import io
import json

from peaksight.diagnosis.logs.accounts import account_of
from peaksight.diagnosis.logs.arithmetic import check_message
from peaksight.postmortem.log import read_log
from peaksight.records import Phase
from peaksight.units import GIB, MIB

QUOTED = """beim Training kommt der Fehler:

> RuntimeError: CUDA out of memory. Tried to allocate 98.00 MiB (GPU 0; 11.76 GiB total capacity; 9.91 GiB already
> allocated; 71.19 MiB free; 10.12 GiB
> reserved in total by PyTorch)
"""
COLOURED = """\x1b[0;31mOutOfMemoryError\x1b[0m                          Traceback (most recent call last)
\x1b[0;32m<ipython-input-17-ab3f>\x1b[0m in \x1b[0;36m<cell line: 4>\x1b[0;34m()\x1b[0m
\x1b[1;32m      6\x1b[0m         \x1b[0mloss\x1b[0m \x1b[0;34m=\x1b[0m \x1b[0mmodel\x1b[0m\x1b[0;34m(\x1b[0mx)
\x1b[0;32m----> 7\x1b[0;31m         \x1b[0mloss\x1b[0m\x1b[0;34m.\x1b[0m\x1b[0mbackward\x1b[0m\x1b[0;34m(\x1b[0m)
\x1b[0;31mOutOfMemoryError\x1b[0m: CUDA out of memory. Tried to allocate 394.00 MiB.
"""


def message_of(text):
    """The one message in `text`."""
    (message,) = read_log(io.BytesIO(text.encode()), "pasted.txt").messages
    return message


def test_a_quoted_message_is_read_to_its_end():
    """What stands behind the mark of a quoted line belongs to the line before."""
    message = message_of(QUOTED)

    assert message.reserved_bytes == round(10.12 * GIB)
    assert message.line == 3


def test_quotes_of_quotes_and_no_others():
    """A mail that was answered twice; near misses: an arrow, a prompt, a comparison."""
    assert message_of(QUOTED.replace("> ", ">> ").replace(">> r", "> > r")).reserved_bytes == round(10.12 * GIB)
    for line in ("----> 7 loss.backward()", ">>>loss", "x > y"):
        assert read_log(io.BytesIO(f"{line}\n".encode()), "log").num_lines == 1


def test_a_cell_in_colours():
    """Its line is told, and no clue shows the codes."""
    evidence = read_log(io.BytesIO(COLOURED.encode()), "pasted.txt")
    (message,) = evidence.messages

    assert (message.at, message.phase) == ("<ipython-input-17-ab3f>:7", Phase.BACKWARD)
    assert not any("[0;" in str(clue) for clue in evidence.clues)


def test_colours_that_json_escapes():
    """The output of a cell in a saved notebook."""
    evidence = read_log(io.BytesIO(json.dumps(COLOURED.splitlines(), indent=1).encode()), "train.ipynb")

    assert evidence.messages
    assert not any("u001b" in str(clue) for clue in evidence.clues)


def test_what_is_cut_off_is_not_taken_for_nothing():
    """GIVEN a text that ends before what is reserved, THEN tensors are not taken for all that the process holds."""
    cut = message_of(QUOTED[: QUOTED.index("10.12")])

    assert cut.free_bytes == round(71.19 * MIB)
    assert account_of(cut).unexplained_bytes is None
    assert account_of(message_of(QUOTED)).unexplained_bytes == round(11.76 * GIB) - cut.free_bytes - round(10.12 * GIB)


def test_more_than_the_card_is_lent_by_the_host():
    """GIVEN nothing is free, as Windows prints it; near miss: some is, which contradicts the rest."""
    text = (
        "CUDA out of memory. Tried to allocate 64.00 MiB. GPU 0 has a total capacity of 8.00 GiB of which {} is free. "
        "Of the allocated memory 13.20 GiB is allocated by PyTorch, and 210.01 MiB is reserved by PyTorch but "
        "unallocated."
    )
    lent, wrong = (
        {check.name: check.holds for check in check_message(message_of(text.format(free)))}
        for free in ("0 bytes", "1.00 GiB")
    )

    assert lent["lent-by-the-host"]
    assert wrong["more-than-capacity"] is False
