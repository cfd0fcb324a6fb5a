"""Streams and events: each stream allocates from blocks of its own."""

import pytest
import torch

from peaksight.attribution import replay_capture
from peaksight.errors import StopSimulation
from peaksight.units import MIB
from tests.helpers import capture_of

from .cards import births_on, card_with, h100

pytestmark = pytest.mark.torch

SIZE = 32 * MIB


@pytest.fixture
def busy(virtual_gpu):
    """A stream that has a second's work to do."""
    side = torch.cuda.Stream()
    virtual_gpu.stopwatch.clocks.launch((0, side.stream_id), 0.0, 1.0)
    return side


def drop_one_used_by(*streams):
    """Make a tensor of `SIZE` bytes that `streams` use, and drop it."""
    tensor = torch.empty(SIZE, dtype=torch.uint8, device="cuda")
    for stream in streams:
        tensor.record_stream(stream)


def serves_another():
    """Whether a new tensor of `SIZE` bytes finds a cached block."""
    before = torch.cuda.memory_reserved()
    torch.empty(SIZE, dtype=torch.uint8, device="cuda")
    return torch.cuda.memory_reserved() == before


class TestRecordedStreams:
    """A block that another stream uses is no longer allocated, but stays active until that stream is done with it."""

    def test_until_the_host_has_waited(self, busy):
        """It serves again from the first allocation after that."""
        drop_one_used_by(busy)
        stats = torch.cuda.memory_stats()

        assert (0, SIZE) == (torch.cuda.memory_allocated(), stats["active_bytes.all.current"])
        assert not serves_another()

        busy.synchronize()

        assert SIZE == torch.cuda.memory_stats()["active_bytes.all.current"]  # nothing has polled yet
        assert serves_another()
        assert 0 == torch.cuda.memory_stats()["active_bytes.all.current"]

    def test_near_misses(self, busy):
        """One that is done already, the own stream, and one that was used and is not."""
        drop_one_used_by(torch.cuda.Stream(), torch.cuda.current_stream())

        assert serves_another()

    def test_the_last_of_several_streams_counts(self, virtual_gpu, busy):
        """The second takes twice as long."""
        other = torch.cuda.Stream()
        virtual_gpu.stopwatch.clocks.launch((0, other.stream_id), 0.0, 2.0)
        drop_one_used_by(busy, other)
        busy.synchronize()

        assert not serves_another()

    def test_empty_cache_waits(self, busy):
        """For all streams, and so does the host."""
        drop_one_used_by(busy)
        torch.cuda.empty_cache()

        assert 0 == torch.cuda.memory_reserved()
        drop_one_used_by(busy)
        assert serves_another()

    def test_a_full_card_waits(self):
        """Before an allocation fails: nothing of it is in the way afterwards."""
        with card_with(3 * SIZE) as gpu:
            side = torch.cuda.Stream()
            gpu.stopwatch.clocks.launch((0, side.stream_id), 0.0, 1.0)
            drop_one_used_by(side)
            large = torch.empty(2 * SIZE, dtype=torch.uint8, device="cuda")

            assert large.nbytes == torch.cuda.memory_reserved()
            assert 1 == torch.cuda.memory_stats()["num_alloc_retries"]

    def test_the_record_repeats_it(self, virtual_gpu, busy):
        """A replay of the run has the same peaks, with the block that was reusable only later."""
        drop_one_used_by(busy)
        serves_another()
        busy.synchronize()
        serves_another()
        drop_one_used_by(busy)
        ledger = virtual_gpu.ledger
        ledger.end(1)
        records = tuple(birth.record() for birth in ledger.births)
        replayed = replay_capture(capture_of(*records), limit_bytes=None)

        assert [True, False, False, True] == [record.reusable is not None for record in records]
        assert 2 * SIZE == ledger.peaks.reserved_bytes == replayed.peak_reserved_bytes

    def test_what_waits_is_active(self, virtual_gpu, busy):
        """A dropped block that a stream still uses is active beside the next one; only one is allocated at a time."""
        drop_one_used_by(busy)
        torch.empty(SIZE // 2, dtype=torch.uint8, device="cuda")

        peaks = virtual_gpu.ledger.peaks
        assert (SIZE, SIZE * 3 // 2) == (peaks.allocated_bytes, peaks.active_bytes)

    def test_steps_are_steady_once_what_waits_is(self):
        """GIVEN a stream that falls behind by a block in each step, THEN the run goes on to see more of it."""
        with h100(max_steps=None) as gpu, pytest.raises(StopSimulation) as stop:
            side, layer = torch.cuda.Stream(), torch.nn.Linear(64, 64).cuda()
            optimizer = torch.optim.SGD(layer.parameters())
            for _ in range(100):
                gpu.stopwatch.clocks.launch((0, side.stream_id), 0.0, 1.0)
                drop_one_used_by(side)
                layer(torch.ones(8, 64, device="cuda")).sum().backward()
                optimizer.step()

        assert ("unsteady", 20) == (stop.value.reason, len(gpu.ledger.steps))
        assert 20 * SIZE <= gpu.ledger.peaks.reserved_bytes

    def test_its_events(self, busy):
        """A recorded history tells of the request, and of its end where something polls."""
        torch.cuda.memory._record_memory_history()
        drop_one_used_by(busy)
        busy.synchronize()
        torch.empty(1, device="cuda")
        (trace,) = torch.cuda.memory._snapshot()["device_traces"]
        actions = [event["action"] for event in trace]

        assert ["segment_alloc", "alloc", "free_requested", "free_completed"] == actions[:4]
        assert SIZE == trace[3]["size"]


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
