"""Several cards in one process: counted, chosen, each with memory of its own."""

import pytest
import torch
from torch import nn

from peaksight.records import Role
from peaksight.units import GIB, MIB

from .cards import births_on, by_role, card_of, card_with, requested, slugs

pytestmark = pytest.mark.torch


def allocated():
    """The bytes that tensors hold on each card."""
    return [torch.cuda.memory_allocated(device) for device in range(torch.cuda.device_count())]


@pytest.fixture
def two_gpus():
    """Two H100."""
    with card_of("h100-80gb", num_gpus=2) as gpu:
        yield gpu


class TestCounting:
    """How many cards there are."""

    def test_all_are_counted(self, two_gpus):
        """torch, its accelerator module and the C function agree; each has the card's properties."""
        assert 2 == torch.cuda.device_count() == torch.accelerator.device_count() == torch._C._cuda_getDeviceCount()
        assert torch.cuda.get_device_properties(1).total_memory == torch.cuda.mem_get_info(1)[1]
        assert 2 == len(torch.cuda.default_generators) == len(torch.cuda.get_rng_state_all())

    @pytest.mark.parametrize("ask", ["set_device", "current_stream", "mem_get_info"])
    def test_one_too_many(self, two_gpus, ask):
        """A third card is as far away as a second one is on a machine with one."""
        with pytest.raises(torch.AcceleratorError, match="invalid device ordinal"):
            getattr(torch.cuda, ask)(2)
        with pytest.raises(torch.AcceleratorError, match="invalid device ordinal"):
            torch.ones(2, device="cuda:2")

    @pytest.mark.parametrize(
        ("visible", "count"), [("1", 1), ("1,0", 2), ("0,1,2", 2), ("2,0", 0), ("", 0), ("-1", 0), ("GPU-a,GPU-b", 2)]
    )
    def test_cuda_visible_devices(self, monkeypatch, two_gpus, visible, count):
        """It names those that the process sees, up to the first that is not there."""
        monkeypatch.setenv("CUDA_VISIBLE_DEVICES", visible)

        assert count == torch.cuda.device_count()
        assert bool(count) is torch.cuda.is_available()

    def test_visible_devices_count_until_the_first_use(self, monkeypatch, two_gpus):
        """CUDA reads the variable once."""
        torch.ones(1, device="cuda:1")
        monkeypatch.setenv("CUDA_VISIBLE_DEVICES", "0")

        assert 2 == torch.cuda.device_count()

    def test_no_visible_device(self, monkeypatch, two_gpus):
        """Nothing can be allocated then."""
        monkeypatch.setenv("CUDA_VISIBLE_DEVICES", "")

        with pytest.raises(RuntimeError, match="No CUDA GPUs are available"):
            torch.ones(1, device="cuda")

    def test_one_card_is_the_visible_one(self, monkeypatch, virtual_gpu):
        """A command with CUDA_VISIBLE_DEVICES=3 in front finds the one card of a run without --gpus."""
        monkeypatch.setenv("CUDA_VISIBLE_DEVICES", "3")

        assert 1 == torch.cuda.device_count()
        assert torch.device("cuda:0") == torch.ones(1, device="cuda").device


class TestCurrentDevice:
    """The device that is meant where none is named."""

    def test_contexts(self, two_gpus):
        """`torch.cuda.device`, `device_of` and `set_device` choose it, and the contexts put back what was before."""
        with torch.cuda.device(1):
            inside = torch.ones(1, device="cuda")
            with torch.cuda.device("cuda:0"), torch.cuda.device_of(inside):
                assert 1 == torch.cuda.current_device()
        torch.cuda.set_device("cuda:1")

        assert (
            torch.device("cuda:1")
            == inside.device
            == torch.ones(1).cuda().device
            == torch.nn.Linear(1, 1).cuda().weight.device
        )
        assert 1 == torch.cuda.current_device() == torch.accelerator.current_device_index()

    def test_a_stream_has_its_device(self, two_gpus):
        """Inside `torch.cuda.stream` the device of the stream is current, and each card has streams of its own."""
        stream = torch.cuda.Stream("cuda:1")
        with torch.cuda.stream(stream):
            assert 1 == torch.cuda.current_device()
            assert stream == torch.cuda.current_stream()
            assert torch.cuda.default_stream(0) == torch.cuda.current_stream(0)
        assert 0 == torch.cuda.current_device()
        assert torch.cuda.default_stream(1) == torch.cuda.current_stream(1)

    def test_a_run_ends_with_the_first(self, two_gpus):
        """The next run in this process begins with card 0."""
        torch.cuda.set_device(1)
        two_gpus.__exit__(None, None, None)
        two_gpus.__enter__()

        assert 0 == torch.cuda.current_device()


class TestMemory:
    """Each card has an allocator of its own."""

    def test_what_is_on_which(self, two_gpus):
        """A tensor takes memory on its card only, and so does what is computed from it."""
        first, second = torch.ones(MIB, device="cuda:0"), torch.ones(3 * MIB, device="cuda:1")
        doubled = second * 2

        assert [4 * MIB, 24 * MIB] == allocated()
        assert torch.device("cuda:1") == doubled.device
        assert first.data_ptr() != second.data_ptr()

    def test_copies_between_cards(self, two_gpus):
        """A copy takes memory where it arrives, also of a view and with a cast; the cast happens before."""
        first = torch.ones(1024, 1024, device="cuda:0")
        second = first.t().to("cuda:1", torch.float16)
        with births_on(two_gpus) as births:
            second.copy_(first)
            first.copy_(second)

        assert [4 * MIB, 2 * MIB] == allocated()
        assert [] == requested(births)

    @pytest.mark.parametrize(
        ("make", "beside"),
        [
            (lambda x: x.to("cuda:1"), ([], [])),
            (lambda x: x.t().to("cuda:1"), ([], [])),
            (lambda x: x.half().to("cuda:1", torch.float32), ([4 * MIB], [])),
            (lambda x: x[:, :512].to("cuda:1"), ([2 * MIB], [])),
            (lambda x: torch.empty(1024, 1024, device="cuda:1").t().copy_(x), ([], [4 * MIB])),
            (lambda x: torch.empty(1024, 1024, device="cuda:1").copy_(x[0].half()), ([4096, 4 * MIB], [])),
        ],
    )
    def test_copies_between_cards_without_peer_access(self, make, beside):
        """GeForce cards send contiguous data only: the rest is cast and put together before, on the first card."""
        with card_of("rtx-4090", num_gpus=2) as gpu:
            x = torch.ones(1024, 1024, device="cuda:0")
            make(x)
            taken = [
                [b.requested_bytes for b in ledger.births if b.role is Role.WORKSPACE] for ledger in gpu.devices.ledgers
            ]

            assert not torch.cuda.can_device_access_peer(0, 1)

        assert beside == tuple(taken)

    def test_peaks_and_cache_of_each(self, two_gpus):
        """Statistics are those of the device that is asked for; `empty_cache` is for all."""
        for device in (0, 1):
            torch.ones((1 + device) * 32 * MIB, device=f"cuda:{device}")
        torch.cuda.reset_peak_memory_stats(0)

        assert [0, 256 * MIB] == [torch.cuda.max_memory_allocated(device) for device in (0, 1)]
        assert [128 * MIB, 256 * MIB] == [torch.cuda.memory_reserved(device) for device in (0, 1)]
        torch.cuda.empty_cache()
        assert [0, 0] == [torch.cuda.memory_reserved(device) for device in (0, 1)]

    def test_out_of_memory_names_its_card(self):
        """The text is that of the card that is full; the other one is not."""
        with card_with(GIB, num_gpus=2):
            torch.ones(64 * MIB, device="cuda:0")
            with pytest.raises(torch.OutOfMemoryError, match="GPU 1 has a total capacity of"):
                torch.ones(512 * MIB, device="cuda:1")

    def test_limits_are_lifted_on_all_cards(self):
        """After as many failures as were asked for, on whichever card; each card has its own, numbered as they came."""
        with card_with(GIB, num_gpus=2, max_failures=2) as gpu:
            for device in ("cuda:0", "cuda:1"):
                with pytest.raises(torch.OutOfMemoryError):
                    torch.ones(512 * MIB, device=device)
            kept = [torch.ones(512 * MIB, device=device) for device in ("cuda:1", "cuda:0")]

        assert all(tensor.is_cuda for tensor in kept)
        assert [[0], [1]] == [[failure.number for failure in gpu.failures.on(device)] for device in (0, 1)]

    def test_snapshots_have_all_cards(self, two_gpus):
        """Segments say whose they are, and there is one trace a card."""
        torch.cuda.memory._record_memory_history()
        kept = [torch.ones(MIB, device=f"cuda:{device}") for device in (0, 1, 1)]
        snapshot = torch.cuda.memory._snapshot()

        assert [0, 1] == sorted({segment["device"] for segment in snapshot["segments"]})
        assert [2, 3] == [len(trace) for trace in snapshot["device_traces"]]
        assert all(tensor.is_cuda for tensor in kept)

    def test_raw_blocks(self, two_gpus):
        """A block by its address is one of the current device."""
        with torch.cuda.device(1):
            address = torch.cuda.caching_allocator_alloc(MIB)
        assert [0, MIB] == allocated()
        torch.cuda.caching_allocator_delete(address)
        assert [0, 0] == allocated()

    def test_storage_resize(self, two_gpus):
        """A storage that was emptied comes back on its card."""
        tensor = torch.ones(MIB, device="cuda:1")
        tensor.untyped_storage().resize_(0)
        assert [0, 0] == allocated()
        tensor.untyped_storage().resize_(4 * MIB)
        assert [0, 4 * MIB] == allocated()


class TestDataParallel:
    """`nn.DataParallel`: replicas of the model on every card, made anew in each forward."""

    def test_one_step(self, two_gpus):
        """Half of the batch is on each card, and so is a replica; outputs and gradients are on the first."""
        model = nn.DataParallel(nn.Sequential(nn.Linear(1024, 1024), nn.Linear(1024, 1024)).cuda())
        weights = sum(parameter.nbytes for parameter in model.parameters())
        out = model(torch.ones(64, 1024))
        replica = by_role(two_gpus.devices.ledgers[1], Role.PARAMETER)
        out.sum().backward()

        assert (64, 1024) == tuple(out.shape)
        assert torch.device("cuda:0") == out.device
        assert weights == replica
        assert 0 == by_role(two_gpus.devices.ledgers[1], Role.PARAMETER)
        assert {torch.device("cuda:0")} == {parameter.grad.device for parameter in model.parameters()}
        assert {"communicator", "record-stream"} == set(slugs(two_gpus))

    def test_buffers_of_replicas(self, two_gpus):
        """Parameters travel in buffers of 10 MiB, one more tensor than fits in each; buffers by their types."""
        model = nn.DataParallel(nn.Sequential(*(nn.Linear(1024, 512, bias=False) for _ in range(7)), nn.BatchNorm1d(8)))
        with births_on(two_gpus.devices.ledgers[1]) as births:
            torch.nn.parallel.replicate(model.module.cuda(), [0, 1])

        weights = [birth for birth in births if birth.role is Role.PARAMETER]
        assert [10 * MIB, 4 * MIB + 2 * 8 * 4] == requested(weights)
        assert [2 * 8 * 4, 8] == requested(birth for birth in births if birth.role is Role.BUFFER)

    def test_scalars_are_gathered(self, two_gpus):
        """A loss computed by each replica comes back as a vector."""

        class Loss(nn.Linear):
            def forward(self, x):
                return super().forward(x).mean()

        with pytest.warns(UserWarning, match="unsqueeze"):
            losses = nn.DataParallel(Loss(8, 8).cuda())(torch.ones(4, 8, device="cuda"))

        assert (2,) == tuple(losses.shape)

    def test_out_of_memory_in_a_replica(self):
        """It names the replica."""
        with card_with(GIB, num_gpus=2):
            model = nn.DataParallel(nn.Linear(16, 1 << 16).cuda())
            kept = torch.ones(800 * MIB, device="cuda:1", dtype=torch.uint8)
            with pytest.raises(torch.OutOfMemoryError, match=r"in replica 1 on device 1(.|\n)*GPU 1 has"):
                model(torch.ones(2048, 16))
            assert kept.is_cuda
