"""The recorded events of the allocator, and the stacks behind blocks."""

import sys

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from torch import nn

from peaksight.allocator import CachingAllocator, Settings
from peaksight.allocator.segment_changes import SegmentChanges
from peaksight.units import MIB

pytestmark = pytest.mark.torch

record = torch.cuda.memory._record_memory_history


def trace():
    """The events recorded so far."""
    return torch.cuda.memory._snapshot()["device_traces"][0]


def actions():
    """Their names."""
    return [event["action"] for event in trace()]


def lines(event):
    """Where `event` happened: the names of the functions, innermost first."""
    return [frame["name"] for frame in event["frames"]]


def alive():
    """The blocks in use."""
    blocks = [block for segment in torch.cuda.memory_snapshot() for block in segment["blocks"]]
    return [block for block in blocks if block["state"] == "active_allocated"]


def make_and_drop():
    """A tensor of 100 bytes in a block of its own."""
    torch.empty(25, device="cuda")


def test_nothing_is_recorded_unasked(virtual_gpu):
    """No event, no stack, and no history to tell about."""
    kept = torch.empty(25, device="cuda")

    assert [[]] == torch.cuda.memory._snapshot()["device_traces"]
    assert [[]] == [block["frames"] for block in alive()]
    assert virtual_gpu.ledger.history is None
    assert kept.is_cuda


def test_events(virtual_gpu):
    """In the order of C++: sizes of blocks are those asked for."""
    record()
    make_and_drop()
    torch.cuda.empty_cache()
    events = trace()
    told = [(event["action"], event["size"], event["stream"], event["pool_id"]) for event in events]

    assert told == [
        ("segment_alloc", 2 * MIB, 0, (0, 0)),
        ("alloc", 100, 0, (0, 0)),
        ("free_requested", 100, 0, (0, 0)),
        ("free_completed", 100, 0, (0, 0)),
        ("segment_free", 2 * MIB, 0, (0, 0)),
    ]
    assert 1 == len({event["addr"] for event in events})
    assert ["snapshot"] == actions()[5:]


def test_stacks(virtual_gpu):
    """Name the person's functions, innermost first, and none of ours."""
    record()
    make_and_drop()
    events = trace()

    assert all(lines(event)[:2] == ["make_and_drop", "test_stacks"] for event in events)
    assert not [frame for event in events for frame in event["frames"] if "peaksight/virtual_gpu" in frame["filename"]]
    assert __file__ == events[0]["frames"][0]["filename"]


def test_stack_of_a_layer(virtual_gpu):
    """Goes through torch's own modules, each once."""
    layer, x = nn.Dropout(), torch.ones(4, device="cuda")
    record()
    layer(x)
    called = lines(trace()[0])

    assert ["dropout", "forward", "_call_impl", "_wrapped_call_impl", "test_stack_of_a_layer"] == called[:5]


def test_backward_has_no_stack(virtual_gpu):
    """It runs in a thread of its own, unless the script turns that off."""
    x = torch.ones(4, device="cuda", requires_grad=True)
    record()
    (x * 2).sum().backward()
    gradient = x.grad.data_ptr()
    (made,) = [event for event in trace() if event["action"] == "alloc" and event["addr"] == gradient]

    assert [] == made["frames"]

    record(None)
    record()
    with torch.autograd.set_multithreading_enabled(False):
        (x * 2).sum().backward()

    assert all(lines(event) for event in trace() if event["action"] == "alloc")


@pytest.mark.parametrize(
    ("context", "in_blocks", "in_allocs", "in_frees"),
    [
        (None, False, None, None),
        ("state", True, None, None),
        ("alloc", True, "keep", "keep"),
        ("all", True, "keep", "drop"),
    ],
)
def test_context(virtual_gpu, context, in_blocks, in_allocs, in_frees):
    """Which events have a stack: without one for the free, it is that of the allocation."""

    def keep():
        return torch.empty(25, device="cuda")

    def drop(kept):
        kept.clear()

    record(context=context)
    kept = [keep()]
    (block,) = alive()
    drop(kept)
    events = {event["action"]: event for event in trace()}

    assert in_blocks == bool(block["frames"])
    for action, expected in (("alloc", in_allocs), ("free_completed", in_frees)):
        assert expected == (lines(events[action])[0] if "frames" in events[action] else None)


def test_the_last_entries_are_kept(virtual_gpu):
    """As many as asked for; `state` keeps stacks of blocks and next to no events."""
    record(max_entries=3)
    make_and_drop()

    assert ["alloc", "free_requested", "free_completed"] == actions()

    record("state", max_entries=100)
    kept = torch.empty(25, device="cuda")

    assert ["alloc"] == actions()
    assert ["test_the_last_entries_are_kept"] == lines(alive()[0])[:1]
    assert kept.is_cuda


def test_recording_ends_and_starts_again(virtual_gpu):
    """The events go, the stacks of blocks stay."""
    record(max_entries=sys.maxsize)
    kept = torch.empty(25, device="cuda")
    record(None)
    make_and_drop()

    assert [] == actions()
    assert [True] == [bool(block["frames"]) for block in alive()]

    record()
    make_and_drop()
    record(clear_history=True)

    assert [] == actions()
    assert kept.is_cuda


def test_actions_are_skipped(virtual_gpu):
    """Those named, which must exist."""
    record(skip_actions=["free_requested", "snapshot", "segment_alloc"])
    make_and_drop()

    assert ["alloc", "free_completed"] == actions() == actions()
    with pytest.raises(RuntimeError, match="Unknown TraceEntry action: nonsense"):
        record(skip_actions=["nonsense"])


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"enabled": "some"}, "expected state to be 'state', 'all', or None"),
        ({"context": "some"}, "expected context to be 'state', 'alloc', 'all', or None"),
        ({"stacks": "some"}, "expected stacks to be 'python', or 'all'"),
    ],
)
def test_options_are_checked(virtual_gpu, options, message):
    """In torch's words."""
    with pytest.raises(RuntimeError, match=message):
        record(**options)


def test_older_form(virtual_gpu):
    """Booleans by position: whether to record, with stacks of blocks, how many events, with their stacks."""
    record(True, True, 100, True)
    make_and_drop()

    assert "make_and_drop" in lines(trace()[-1])

    record(True, False, 100, clear_history=True)
    make_and_drop()

    assert not any("frames" in event for event in trace())

    record(False)

    assert [] == actions()


def test_words_of_the_script(virtual_gpu):
    """Metadata of the events from here on, and of one allocation afterwards."""
    memory = torch.cuda.memory
    memory._set_memory_metadata("epoch 1")
    record()
    kept = torch.empty(25, device="cuda")

    assert "epoch 1" == memory._get_memory_metadata() == trace()[-1]["user_metadata"]
    if hasattr(memory, "_annotate_tensor"):
        memory._annotate_tensor(kept[5:], "the input")

        (annotation,) = [event for event in trace() if event["action"] == "annotate"]

        assert ("the input", kept.data_ptr()) == (annotation["user_metadata"], annotation["addr"])


def test_stack_of_one_allocation(virtual_gpu):
    """By its address."""
    if not hasattr(torch._C, "_cuda_allocationTraceback"):
        pytest.skip("this torch does not tell")
    record()
    kept = torch.empty(25, device="cuda")
    frames = torch._C._cuda_allocationTraceback(kept.data_ptr())

    assert "test_stack_of_one_allocation" == frames[0]["name"]
    assert torch._C._cuda_allocationTraceback(12345) is None


SIZES = st.sampled_from([512, MIB, 3 * MIB, 15 * MIB, 50 * MIB])


@pytest.mark.parametrize("expandable", [False, True])
@given(choices=st.lists(st.tuples(SIZES, st.integers(0, 3)), max_size=30))
def test_segments_change_as_told(expandable, choices):
    """What was taken less what was given back is what is reserved, address by address."""
    allocator = CachingAllocator(settings=Settings(expandable_segments=expandable))
    changes, alive, pages = SegmentChanges(allocator), [], {}
    for size, choice in choices:
        if choice == 0 and alive:
            allocator.free(alive.pop(0))
        elif choice == 1:
            allocator.empty_cache()
        else:
            alive.append(allocator.malloc(size, choice))
        for action, address, num_bytes, stream in changes.since_last_time():
            assert action in (("segment_map", "segment_unmap") if expandable else ("segment_alloc", "segment_free"))
            for page in range(address, address + num_bytes, 2 * MIB):
                if action in ("segment_alloc", "segment_map"):
                    assert page not in pages
                    pages[page] = stream
                else:
                    assert stream == pages.pop(page)
        segments = allocator.segments()
        assert pages == {
            page: segment.stream
            for segment in segments
            for page in range(segment.address, segment.address + segment.total_size, 2 * MIB)
        }
