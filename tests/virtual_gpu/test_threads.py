"""Threads of the script have the card too."""

import threading
import traceback
from concurrent.futures import ThreadPoolExecutor
from queue import Queue

import pytest
import torch
from torch import nn
from torch.overrides import _get_current_function_mode_stack
from torch.utils._python_dispatch import _get_current_dispatch_mode_stack

from peaksight.errors import StopSimulation
from peaksight.units import GIB

from .cards import births_on, card_with, requested, slugs

pytestmark = pytest.mark.torch


def in_thread(function):
    """Run `function` in a thread of its own to its end."""
    thread = threading.Thread(target=function)
    thread.start()
    thread.join()


def test_a_thread_moves_data_to_the_card(virtual_gpu):
    """Counted as ever, and said: on the card the order may be another."""
    batches = Queue()
    with births_on(virtual_gpu) as births:
        in_thread(lambda: batches.put(torch.ones(4, 3).to("cuda") + torch.ones(3, device="cuda")))

    assert batches.get().is_cuda
    assert requested(births) == [48, 12, 48]
    assert slugs(virtual_gpu) == ["threads"]


def test_threads_take_turns(virtual_gpu):
    """While one thread loads, the other trains: every block is given back, none twice."""
    layer = nn.Linear(64, 64).cuda()
    batches = Queue(maxsize=2)
    thread = threading.Thread(target=lambda: [batches.put(torch.ones(8, 64).cuda() * 2) for _ in range(100)])
    thread.start()
    for _ in range(100):
        layer(batches.get()).sum().backward()
    thread.join()

    alive = [birth for birth in virtual_gpu.ledger.births if birth.died is None]
    assert sum(birth.allocated_bytes for birth in alive) == torch.cuda.memory_allocated()
    assert [birth.requested_bytes for birth in alive if birth.requested_bytes == 8 * 64 * 4] == []


class ModesAtTheEnd(threading.Thread):
    """Keeps the modes that the thread is in once all is done."""

    def _bootstrap(self):
        super()._bootstrap()
        self.modes = [*_get_current_function_mode_stack(), *_get_current_dispatch_mode_stack()]


def test_a_thread_ends_in_no_mode(virtual_gpu):
    """Else C++ frees its modes after it, and aborts a process that ends just then, as after tqdm's monitor."""
    thread = ModesAtTheEnd(target=lambda: torch.ones(4, device="cuda"))
    thread.start()
    thread.join()

    assert slugs(virtual_gpu) == ["threads"]
    assert thread.modes == []


def test_a_full_card_fails_in_the_thread():
    """Whoever waits for its result gets the error."""
    with card_with(GIB) as gpu, ThreadPoolExecutor(1) as pool:
        result = pool.submit(torch.empty, 2 * GIB, dtype=torch.uint8, device="cuda")
        with pytest.raises(torch.OutOfMemoryError):
            result.result()

        assert [failure.requested_bytes for failure in gpu.failures.records] == [2 * GIB]


@pytest.fixture
def reported(monkeypatch):
    """What threads that fail on a card tell Python."""
    failures = []
    monkeypatch.setattr(threading, "excepthook", failures.append)
    with card_with(GIB):
        yield failures


def test_the_traceback_of_a_thread(reported):
    """As without us."""
    in_thread(lambda: torch.ones(2, device="cuda").view(3))
    (failure,) = reported
    frames = traceback.extract_tb(failure.exc_traceback)

    assert failure.exc_type is RuntimeError
    assert [frame.name for frame in frames] == ["_bootstrap_inner", "run", "<lambda>"]


def test_a_thread_that_trains_ends_with_the_simulation(reported):
    """Without a word: it has shown enough."""

    def stop():
        raise StopSimulation("steady")

    in_thread(stop)

    assert reported == []
