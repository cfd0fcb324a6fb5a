"""Scripts that ask the driver through pynvml."""

import os

import pytest
import torch

from peaksight.gpus import find_card, room_on
from peaksight.units import GIB

from .cards import card_of, h100

pynvml = pytest.importorskip("pynvml")
pytestmark = pytest.mark.torch

ROOM = room_on(find_card("h100-80gb"))


@pytest.fixture
def handle(virtual_gpu):
    """The only card."""
    pynvml.nvmlInit()
    yield pynvml.nvmlDeviceGetHandleByIndex(0)
    pynvml.nvmlShutdown()


def test_which_card(handle):
    """One H100."""
    assert 1 == pynvml.nvmlDeviceGetCount()
    assert 0 == pynvml.nvmlDeviceGetIndex(handle)
    assert ROOM.card.product_name == pynvml.nvmlDeviceGetName(handle)
    assert (9, 0) == tuple(pynvml.nvmlDeviceGetCudaComputeCapability(handle))
    with pytest.raises(pynvml.NVMLError, match="Invalid Argument"):
        pynvml.nvmlDeviceGetHandleByIndex(1)


def test_memory(handle):
    """What is used, in all and by this process, follows the allocator."""
    kept = torch.empty(GIB, dtype=torch.uint8, device="cuda")
    info = pynvml.nvmlDeviceGetMemoryInfo(handle)
    (process,) = pynvml.nvmlDeviceGetComputeRunningProcesses(handle)
    used = ROOM.card.total_bytes - ROOM.usable_bytes + kept.numel()

    assert (used, ROOM.card.total_bytes - used, ROOM.card.total_bytes) == (info.used, info.free, info.total)
    assert used == pynvml.nvmlDeviceGetMemoryInfo(handle, version=pynvml.nvmlMemory_v2).used
    assert (os.getpid(), ROOM.context_bytes + GIB) == (process.pid, process.usedGpuMemory)


def test_several_cards(monkeypatch):
    """The driver counts all of them, also those that the process does not see, and tells of each by its own number."""
    monkeypatch.setenv("CUDA_VISIBLE_DEVICES", "2,0")
    with card_of("h100-80gb", num_gpus=3):
        kept = torch.empty(GIB, dtype=torch.uint8, device="cuda:0")
        pynvml.nvmlInit()
        cards = [pynvml.nvmlDeviceGetHandleByIndex(index) for index in range(pynvml.nvmlDeviceGetCount())]
        used = [pynvml.nvmlDeviceGetMemoryInfo(card).used for card in cards]
        processes = [len(pynvml.nvmlDeviceGetComputeRunningProcesses(card)) for card in cards]

        assert [0, 1, 2] == [pynvml.nvmlDeviceGetIndex(card) for card in cards]
        assert [0, ROOM.context_bytes + kept.numel()] == used[1:]
        assert 0 == processes[1]


def test_what_is_not_simulated(handle):
    """Is not supported, which scripts expect of some cards."""
    with pytest.raises(pynvml.NVMLError, match="Not Supported"):
        pynvml.nvmlDeviceGetFanSpeed(handle)


def test_the_driver_is_put_back():
    """After the card, its own library answers."""
    before = pynvml._nvmlGetFunctionPointer
    with h100():
        pynvml.nvmlInit()

    assert before is pynvml._nvmlGetFunctionPointer


def test_what_loggers_ask_beside_memory(handle):
    """torch.cuda asks through pynvml, too; a card that does nothing uses nothing."""
    asked = (torch.cuda.utilization, torch.cuda.memory_usage, torch.cuda.temperature, torch.cuda.power_draw)

    assert [ask() for ask in (*asked, torch.cuda.clock_rate)] == [0] * 5
    assert pynvml.nvmlDeviceGetUtilizationRates(handle).gpu == 0
