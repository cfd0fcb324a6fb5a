"""Streams and events: each stream allocates from blocks of its own."""

import pytest
import torch

from peaksight.units import MIB

from .cards import births_on

pytestmark = pytest.mark.torch


def test_stream_has_its_own_blocks(virtual_gpu):
    """A block freed on one stream does not serve another: two segments of 32 MiB are reserved."""
    side = torch.cuda.Stream()
    torch.empty(8 * MIB, device="cuda")
    with births_on(virtual_gpu) as births, torch.cuda.stream(side):
        torch.empty(8 * MIB, device="cuda")
    torch.empty(8 * MIB, device="cuda")

    assert [side.stream_id] == [birth.stream for birth in births]
    assert 64 * MIB == torch.cuda.memory_reserved()
    assert 32 * MIB == torch.cuda.max_memory_allocated()


def test_current_stream(virtual_gpu):
    """The current stream changes inside `torch.cuda.stream` and with `set_stream`."""
    side = torch.cuda.Stream()
    default = torch.cuda.current_stream()
    with torch.cuda.stream(side):
        inside = torch.cuda.current_stream()
    torch.cuda.set_stream(side)

    assert torch.cuda.default_stream() == default != side
    assert side == inside == torch.cuda.current_stream()
    assert torch.cuda.stream(None).__enter__() is None

    torch.cuda.set_stream(default)

    assert 0 == virtual_gpu.ledger.stream


def test_waiting(virtual_gpu):
    """Streams and events wait for nothing."""
    side, event = torch.cuda.Stream(priority=-1), torch.cuda.Event(enable_timing=True)
    side.wait_stream(torch.cuda.current_stream())
    event.record(side)
    side.wait_event(event)
    side.record_event().synchronize()
    torch.cuda.current_stream().synchronize()
    tensor = torch.ones(4, device="cuda")
    tensor.record_stream(side)

    assert event.query()
    assert side.query()
    assert event.elapsed_time(torch.cuda.Event(enable_timing=True)) > 0


def test_backward_on_a_side_stream(virtual_gpu):
    """A forward on a side stream has a backward that runs."""
    weight = torch.ones(4, device="cuda", requires_grad=True)
    with torch.cuda.stream(torch.cuda.Stream()):
        loss = (weight * 2).sum()
    loss.backward()

    assert weight.grad.is_cuda
