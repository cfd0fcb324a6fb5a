"""A run has so many processes at a time and no more; nothing here forks without bound."""

import errno
import os

import pytest

from peaksight.virtual_gpu.script import Scratch, process_limit

pytestmark = pytest.mark.usefixtures("home")


class Children:
    """Forked processes that wait until they are let go."""

    def __init__(self):
        self._reading, self._writing = os.pipe()
        self._processes = []

    def fork(self):
        process = os.fork()
        if process == 0:
            os.close(self._writing)
            os.read(self._reading, 1)
            os._exit(0)
        self._processes.append(process)

    def let_go(self):
        os.close(self._writing)
        for process in self._processes:
            os.waitpid(process, 0)
        os.close(self._reading)


def test_one_process_too_many(monkeypatch):
    """It is refused as by a system at its limit, until others have ended."""
    monkeypatch.setattr(process_limit, "MAX_PROCESSES", 2)
    with Scratch():
        for _ in range(2):
            children = Children()
            try:
                children.fork()
                children.fork()
                with pytest.raises(BlockingIOError) as refused:
                    children.fork()
            finally:
                children.let_go()

    assert errno.EAGAIN == refused.value.errno


def test_grandchildren_count(monkeypatch):
    """A process that was forked may fork as many as are left."""
    monkeypatch.setattr(process_limit, "MAX_PROCESSES", 1)
    with Scratch():
        process = os.fork()
        if process == 0:
            try:
                if os.fork() == 0:
                    os._exit(0)
            except BlockingIOError:
                os._exit(11)
            os._exit(1)

        assert 11 == os.waitpid(process, 0)[1] >> 8


def test_the_limit_is_far_away():
    """Of what people start."""
    assert 64 < process_limit.MAX_PROCESSES


def test_outside_of_a_run(monkeypatch):
    """Nothing is counted."""
    monkeypatch.setattr(process_limit, "MAX_PROCESSES", -1)
    children = Children()
    children.fork()
    children.let_go()
