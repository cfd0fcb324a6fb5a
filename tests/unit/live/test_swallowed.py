"""An error of memory that the script catches, and by which it goes on, raises another one or exits."""

import gc
import logging
import os
import subprocess
import sys
import traceback
from contextlib import suppress

import pytest

from peaksight.live.watching import Watching, recording
from peaksight.postmortem.capsules import read_capsule
from peaksight.records.capsule import Sign
from peaksight.records.watched_file import read_watched
from tests.helpers_live import MadeUpCard, figures_of

DISGUISED = "CUDA error: CUBLAS_STATUS_ALLOC_FAILED when calling `cublasCreate(handle)`"
HANDLERS = {
    "collects": lambda: gc.collect(0),
    "logs": lambda: logging.getLogger("silent").error("it was too large"),
    "prints": lambda: traceback.print_exc(limit=1),
    "logs its traceback": lambda: logging.getLogger("silent").warning(traceback.format_exc()),
}


@pytest.fixture
def watched(tmp_path):
    """What runs a function that is watched; `watched.files(suffix)` are what it left."""
    logging.getLogger("silent").propagate = False
    logging.getLogger("silent").addHandler(logging.NullHandler())

    def run(body):
        with recording(Watching(directory=tmp_path, quiet=True), ("train.py",), MadeUpCard([figures_of()])):
            body()

    run.capsules = lambda: [read_capsule(path).capsule for path in tmp_path.glob("*.capsule*")]
    run.events = lambda: [event.kind for path in tmp_path.glob("*.jsonl") for event in read_watched(path).events]
    return run


def swallow(handler, text=DISGUISED):
    try:
        raise RuntimeError(text)
    except RuntimeError:
        handler()


@pytest.mark.parametrize("handler", HANDLERS)
def test_the_script_goes_on(watched, handler):
    watched(lambda: swallow(HANDLERS[handler]))
    (capsule,) = watched.capsules()

    assert capsule.failure.sign is Sign.CUBLAS
    assert capsule.failure.stack[0].name == "swallow"
    assert not capsule.ending.is_out_of_memory
    assert watched.events() == ["out-of-memory"]


def test_a_handler_that_does_several_of_them_is_one_failure(watched):
    watched(lambda: swallow(lambda: (gc.collect(), traceback.format_exc(), gc.collect())))

    assert watched.events() == ["out-of-memory"]


def test_another_exit_is_made_of_it(watched):
    """GIVEN a handler that exits, THEN the exit is told to be of memory."""
    with pytest.raises(SystemExit):
        watched(lambda: swallow(lambda: sys.exit(3)))
    (capsule,) = watched.capsules()

    assert (capsule.failure.sign, capsule.ending.exit_code) == (Sign.CUBLAS, 3)
    assert capsule.ending.is_out_of_memory


@pytest.mark.parametrize("body", [lambda: swallow(gc.collect, "a shape"), gc.collect, lambda: sys.exit(0)])
def test_what_is_none(watched, body):
    """Errors of another kind, no error, and an exit that is none."""
    with suppress(SystemExit):
        watched(body)

    assert [] == watched.capsules() == watched.events()


def test_the_process_is_left_at_once(tmp_path):
    """`os._exit` within a handler: the capsule and the end are there, the code is the script's."""
    program = (
        "import os, sys\nfrom pathlib import Path\nfrom peaksight.live.watching import Watching, recording\n"
        "with recording(Watching(directory=Path(sys.argv[1]), quiet=True), ('train.py',)):\n"
        f"    try:\n        raise RuntimeError({DISGUISED!r})\n    except RuntimeError:\n        os._exit(7)\n"
    )
    done = subprocess.run([sys.executable, "-c", program, str(tmp_path)], capture_output=True, text=True)
    (capsule,) = (read_capsule(path).capsule for path in tmp_path.glob("*.capsule*"))

    assert (7, 7) == (done.returncode, capsule.ending.exit_code), done.stderr
    assert capsule.ending.is_out_of_memory


def test_what_was_replaced_is_put_back(watched):
    before = (gc.collect, os._exit, traceback.format_exc, logging.Logger.handle)

    watched(lambda: None)

    assert before == (gc.collect, os._exit, traceback.format_exc, logging.Logger.handle)
