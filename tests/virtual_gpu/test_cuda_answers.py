"""`torch.cuda` and `torch.accelerator` answer like the card."""

import pytest
import torch

from peaksight.gpus import find_card

from .cards import card_of

pytestmark = pytest.mark.torch


def test_which_card(virtual_gpu):
    """One H100 of compute capability 9.0 under the CUDA of the rules."""
    card = find_card("h100-80gb")
    properties = torch.cuda.get_device_properties(0)

    assert torch.cuda.is_available()
    assert (1, 0) == (torch.cuda.device_count(), torch.cuda.current_device())
    assert card.product_name == torch.cuda.get_device_name() == properties.name
    assert (9, 0) == torch.cuda.get_device_capability() == (properties.major, properties.minor)
    assert card.total_bytes == properties.total_memory
    assert 132 == properties.multi_processor_count
    assert torch.cuda.is_bf16_supported()
    assert "13.0" == torch.version.cuda


def test_limits_of_a_block(virtual_gpu):
    """What kernels of a person's own ask for before they choose their tiles, as a real H100 says it."""
    properties = torch.cuda.get_device_properties(0)

    assert (1024, 49152) == (properties.max_threads_per_block, properties.shared_memory_per_block)
    assert 227 << 10 == properties.shared_memory_per_block_optin
    assert 228 << 10 == properties.shared_memory_per_multiprocessor


@pytest.mark.parametrize(("name", "capability", "has_bf16"), [("t4", (7, 5), False), ("rtx-4090", (8, 9), True)])
def test_other_cards(name, capability, has_bf16):
    """Each card answers for itself."""
    threads = find_card(name).threads_per_multi_processor
    with card_of(name):
        assert threads == torch.cuda.get_device_properties(0).max_threads_per_multi_processor
        assert capability == torch.cuda.get_device_capability()
        assert has_bf16 == torch.cuda.is_bf16_supported(including_emulation=False)


def test_initialisation(virtual_gpu):
    """Starting, choosing and synchronizing the device do nothing."""
    torch.cuda.init()
    with pytest.raises(torch.AcceleratorError, match="invalid device ordinal"):
        torch.cuda.set_device(1)
    torch.cuda.set_device(0)
    torch.cuda.set_device("cuda:0")
    torch._C._cuda_setDevice(0)
    torch.cuda.synchronize()
    torch.cuda.set_per_process_memory_fraction(0.5)
    torch.cuda.ipc_collect()
    with torch.cuda.device(0), torch.cuda.device("cuda:0"), torch.cuda.device_of(torch.ones(1, device="cuda")):
        made = torch.ones(1, device="cuda")

    assert torch.cuda.is_initialized()
    assert made.is_cuda


def test_random_state(virtual_gpu):
    """Seeds are taken, states are handed out and taken back, and `fork_rng` works."""
    torch.manual_seed(1)
    torch.cuda.manual_seed(1)
    torch.cuda.manual_seed_all(1)
    state = torch.cuda.get_rng_state()
    torch.cuda.set_rng_state(state)
    torch.cuda.set_rng_state_all(torch.cuda.get_rng_state_all())
    with torch.random.fork_rng(devices=[0]):
        torch.rand(1, device="cuda")

    assert (torch.uint8, "cpu", 1) == (state.dtype, state.device.type, state.dim())


def test_host_seed_is_real(virtual_gpu):
    """`torch.manual_seed` seeds the host's generator."""
    draws = [torch.rand(2).tolist() for _ in range(2) if torch.manual_seed(0)]

    assert draws[0] == draws[1]


def test_generator(virtual_gpu):
    """A generator of the card keeps its seed and works in every draw."""
    generator = torch.Generator(device="cuda").manual_seed(5)

    assert torch.device("cuda", 0) == generator.device
    assert 5 == generator.initial_seed()
    assert isinstance(generator, torch.Generator)
    assert isinstance(torch.default_generator, torch.Generator)
    assert torch.empty(2, device="cuda").normal_(generator=generator).is_cuda
    assert torch.randperm(4, device="cuda", generator=generator).is_cuda
    assert [2, 0, 1] == torch.randperm(3, generator=torch.Generator().manual_seed(0)).tolist()


def test_accelerator(virtual_gpu):
    """`torch.accelerator` names the same card and counts the same bytes."""
    torch.accelerator.synchronize()
    kept = torch.ones(1, device=torch.accelerator.current_accelerator())

    assert torch.accelerator.is_available()
    assert 1 == torch.accelerator.device_count()
    assert "cuda" == torch.accelerator.current_accelerator().type
    assert 0 == torch.accelerator.current_device_index()
    assert kept.is_cuda
    if hasattr(torch.accelerator, "memory_allocated"):
        assert 512 == torch.accelerator.memory_allocated()


def test_backends(virtual_gpu):
    """Switches of cuDNN, TF32 and matmul precision can be set."""
    torch.backends.cudnn.benchmark = False
    torch.backends.cuda.matmul.allow_tf32 = False
    torch.set_float32_matmul_precision("highest")

    assert torch.backends.cuda.is_built()
    assert torch.backends.cudnn.is_available()


def test_out_of_memory_is_catchable(virtual_gpu):
    """Scripts that name torch.cuda.OutOfMemoryError find it."""
    assert issubclass(torch.cuda.OutOfMemoryError, RuntimeError)


def test_nvtx_and_profiler(virtual_gpu):
    """Ranges and profilers of the device do nothing."""
    with torch.profiler.record_function("step"):
        torch.cuda.nvtx.range_push("forward")
        torch.cuda.nvtx.range_pop()


def test_profiler(virtual_gpu, capfd):
    """What the host runs is there, whatever it is sorted by; of the card there is nothing, and no driver complains."""
    kinds = [torch.profiler.ProfilerActivity.CPU, torch.profiler.ProfilerActivity.CUDA]
    for activities in (kinds, kinds[1:], None):
        with torch.profiler.profile(activities=activities, record_shapes=True, profile_memory=True) as seen:
            torch.ones(4, 4, device="cuda").sum()
            seen.step()
        assert "aten::sum" in seen.key_averages().table(sort_by="cuda_time_total", row_limit=20)
    with torch.autograd.profiler.profile(use_device="cuda"):
        torch.ones(4, device="cuda").sum()
    with torch.autograd.profiler.emit_nvtx():
        torch.ones(4, device="cuda").sum()

    assert "CUDA" not in capfd.readouterr().err


@pytest.mark.parametrize(("card", "natively"), [("t4", False), ("a100-40gb", True)])
def test_bfloat16(card, natively):
    """Every card has tensors in bfloat16, also under autocast; before Ampere its arithmetic is emulated."""
    with card_of(card):
        assert torch.cuda.is_bf16_supported()
        assert natively == torch.cuda.is_bf16_supported(including_emulation=False)
        with torch.autocast("cuda", torch.bfloat16):
            assert (torch.ones(2, 2, device="cuda") @ torch.ones(2, 2, device="cuda")).dtype == torch.bfloat16
