"""What a script asks about memory is answered by torch's own code, from the simulated allocator."""

import os
import re

import pytest
import torch

from peaksight.errors import PeaksightError
from peaksight.gpus import find_card, room_on
from peaksight.units import GIB, MIB

from .cards import slugs

pytestmark = pytest.mark.torch

H100 = room_on(find_card("h100-80gb"))


def test_bytes(virtual_gpu):
    """Allocated and reserved bytes and their peaks follow the allocator.

    2,000,000 bytes are rounded to 2,000,384 in a segment of 20 MiB.
    """
    tensor = torch.empty(500_000, device="cuda")

    assert 2_000_384 == torch.cuda.memory_allocated()
    assert 20 * MIB == torch.cuda.memory_reserved()

    del tensor

    assert (0, 2_000_384) == (torch.cuda.memory_allocated(), torch.cuda.max_memory_allocated())

    torch.cuda.empty_cache()

    assert (0, 20 * MIB) == (torch.cuda.memory_reserved(), torch.cuda.max_memory_reserved())

    torch.cuda.reset_peak_memory_stats()

    assert (0, 0) == (torch.cuda.max_memory_allocated(0), torch.cuda.max_memory_reserved("cuda"))


def test_free_memory(virtual_gpu):
    """The card's, less the context, the segments and what lies outside of them."""
    free, total = torch.cuda.mem_get_info()

    assert (H100.usable_bytes, H100.card.total_bytes) == (free, total)

    kept = torch.empty(GIB, dtype=torch.uint8, device="cuda")
    virtual_gpu.ledger.allocator.take_outside(MIB)

    assert (free - GIB - MIB, total) == torch.cuda.mem_get_info("cuda:0")
    assert total - free + GIB + MIB == torch.cuda.device_memory_used()
    assert kept.is_cuda


def test_statistics(virtual_gpu):
    """Flat and nested, with the counts of the allocator."""
    kept = torch.empty(25, device="cuda")
    stats = torch.cuda.memory_stats("cuda")

    assert list(stats) == sorted(stats)
    assert (512, 100) == (stats["allocated_bytes.all.current"], stats["requested_bytes.all.current"])
    assert 0 == stats["num_oom_rejections"]
    assert 512 == torch.cuda.memory_stats_as_nested_dict()["allocated_bytes"]["all"]["current"]
    assert {} == torch.cuda.memory_stats_as_nested_dict()["reserved_bytes_by_private_pools"]
    assert kept.is_cuda

    del kept
    torch.cuda.reset_accumulated_memory_stats()

    assert 0 == torch.cuda.memory_stats()["allocated_bytes.all.freed"]


def test_summary(virtual_gpu):
    """The table that torch prints."""
    kept = torch.empty(25, device="cuda")

    assert re.search(r"\| Allocated memory +\| +512 B +\| +512 B +\| +512 B +\| +0 B +\|", torch.cuda.memory_summary())
    assert "from small pool" not in torch.cuda.memory_summary(abbreviated=True)
    assert kept.is_cuda


def test_old_names_warn(virtual_gpu):
    """As torch does."""
    with pytest.warns(FutureWarning, match="memory_reserved"):
        assert 0 == torch.cuda.memory_cached()
    with pytest.warns(FutureWarning, match="resets /all/ peak memory stats"):
        torch.cuda.reset_max_memory_allocated()


def test_there_is_one_device(virtual_gpu):
    """Another index is refused where torch refuses it."""
    with pytest.raises(RuntimeError, match="Invalid device argument"):
        torch.cuda.memory_stats(1)


def test_accelerator(virtual_gpu):
    """`torch.accelerator` tells the same."""
    accelerator = torch.accelerator.memory if hasattr(torch.accelerator, "memory") else torch.accelerator
    kept = torch.empty(25, device="cuda")

    assert 512 == accelerator.memory_allocated() == accelerator.max_memory_allocated("cuda")
    assert 2 * MIB == accelerator.memory_reserved(0) == accelerator.max_memory_reserved()
    assert torch.cuda.memory_stats() == accelerator.memory_stats()
    assert torch.cuda.mem_get_info() == accelerator.get_memory_info()

    del kept
    accelerator.empty_cache()
    accelerator.reset_peak_memory_stats()
    accelerator.reset_accumulated_memory_stats()

    assert 0 == accelerator.max_memory_reserved()


def test_memory_fraction(virtual_gpu):
    """What was set is told, what torch refuses is refused."""
    assert 1.0 == torch.cuda.get_per_process_memory_fraction()

    torch.cuda.set_per_process_memory_fraction(0.5)

    assert 0.5 == torch.cuda.get_per_process_memory_fraction("cuda:0")

    torch.cuda.set_per_process_memory_fraction(1.0)

    assert 1.0 == torch.cuda.get_per_process_memory_fraction()
    with pytest.raises(ValueError, match=r"Invalid fraction value: 1.5. Allowed range: 0~1"):
        torch.cuda.set_per_process_memory_fraction(1.5)
    with pytest.raises(TypeError, match="must be `float`"):
        torch.cuda.set_per_process_memory_fraction(1)


def test_settings_change_while_it_runs(virtual_gpu):
    """Segments made afterwards are expandable; the text is told back."""
    classic = torch.empty(MIB, device="cuda")
    torch._C._accelerator_setAllocatorSettings("expandable_segments:True")
    expandable = torch.empty(6 * MIB, device="cuda")
    told = {segment["total_size"]: segment["is_expandable"] for segment in torch.cuda.memory_snapshot()}

    assert {20 * MIB: False, 40 * MIB: True} == told
    assert "expandable_segments:True" == torch._C._accelerator_getAllocatorSettings()
    assert classic.is_cuda
    assert expandable.is_cuda
    with pytest.raises(ValueError, match="nonsense"):
        torch._C._accelerator_setAllocatorSettings("nonsense:1")
    with pytest.raises(PeaksightError, match="cudaMallocAsync"):
        torch._C._accelerator_setAllocatorSettings("backend:cudaMallocAsync")


def test_settings_by_the_old_name(virtual_gpu):
    """Which warns and does the same."""
    with pytest.warns(FutureWarning):
        torch.cuda.memory._set_allocator_settings("roundup_power2_divisions:4")
    kept = torch.empty(9 * MIB, dtype=torch.uint8, device="cuda")

    assert 10 * MIB == torch.cuda.memory_allocated()
    assert kept.is_cuda


def test_memory_by_address(virtual_gpu):
    """`caching_allocator_alloc` takes a block, `caching_allocator_delete` gives it back once."""
    address = torch.cuda.caching_allocator_alloc(1000, stream=torch.cuda.Stream())

    assert 1024 == torch.cuda.memory_allocated()
    assert address == torch.cuda.memory_snapshot()[0]["address"]

    torch.cuda.caching_allocator_delete(address)

    assert 0 == torch.cuda.memory_allocated()
    assert 0 == virtual_gpu.ledger.stream
    with pytest.raises(RuntimeError, match="invalid device pointer: 0x"):
        torch.cuda.caching_allocator_delete(address)


def test_tensors_lie_where_their_blocks_are(virtual_gpu):
    """A script finds its tensor in the snapshot by its address."""
    tensor = torch.empty(1000, device="cuda")
    (block,) = [block for block in torch.cuda.memory_snapshot()[0]["blocks"] if block["state"] == "active_allocated"]

    assert block["address"] == tensor.data_ptr() == tensor[10:].data_ptr() - 40
    assert tensor.untyped_storage().data_ptr() == tensor[10:].untyped_storage().data_ptr()


def test_other_allocators_are_refused(virtual_gpu):
    """By name."""
    for ask in (
        lambda: torch.cuda.memory.CUDAPluggableAllocator("alloc.so", "alloc", "free"),
        lambda: torch.cuda.MemPool(),
        lambda: torch.cuda.caching_allocator_enable(False),
    ):
        with pytest.raises(PeaksightError, match="caching allocator") as refused:
            ask()
        assert "allocator-not-simulated" == refused.value.slug
    torch.cuda.caching_allocator_enable(True)

    assert "native" == torch.cuda.get_allocator_backend()


def test_processes(virtual_gpu):
    """This one, with its context and segments."""
    kept = torch.empty(20 * MIB, dtype=torch.uint8, device="cuda")
    used = (H100.context_bytes + 20 * MIB) / MIB

    assert f"GPU:0\nprocess {os.getpid():>10d} uses {used:>12.3f} MB GPU memory" == torch.cuda.list_gpu_processes()
    assert kept.is_cuda


def test_pinned_memory(virtual_gpu):
    """Is host memory: its allocator has handed out nothing."""
    if not hasattr(torch.cuda, "host_memory_stats"):
        pytest.skip("this torch has no statistics of pinned memory")
    torch.empty(1000).pin_memory()
    stats = torch.cuda.host_memory_stats()
    torch.cuda.memory.reset_peak_host_memory_stats()

    assert 0 == stats["allocated_bytes.current"] == stats["host_alloc_time.total"]


def test_runtime(virtual_gpu):
    """CUDA's runtime starts no profiler, and says so with success."""
    torch.cuda.check_error(torch.cuda.cudart().cudaProfilerStart())
    torch.cuda.profiler.stop()


def test_other_streams(virtual_gpu):
    """A tensor that another stream uses is noted, one used by its own is not."""
    tensor = torch.empty(1000, device="cuda")
    tensor.record_stream(torch.cuda.current_stream())

    assert [] == slugs(virtual_gpu)

    tensor.record_stream(torch.cuda.Stream())

    assert ["record-stream"] == slugs(virtual_gpu)


@pytest.mark.parametrize("capture", [torch.cuda.CUDAGraph, torch.cuda.graph_pool_handle])
def test_cuda_graphs_are_refused(virtual_gpu, capture):
    """Their pool isn't simulated; near miss: to ask whether one is captured."""
    assert not torch.cuda.is_current_stream_capturing()
    with pytest.raises(PeaksightError, match="CUDA graphs: what a captured graph needs"):
        capture()


def test_graphed_callables_are_refused(virtual_gpu):
    """They capture, too."""
    layer, batch = torch.nn.Linear(8, 8).cuda(), torch.randn(4, 8, device="cuda")
    with pytest.raises(PeaksightError, match="CUDA graphs"):
        torch.cuda.make_graphed_callables(layer, (batch,))
