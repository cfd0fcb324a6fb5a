"""What a full card does to a script."""

import gc

import pytest
import torch
from torch import nn

from peaksight.errors import StopSimulation
from peaksight.gpus import find_card, room_on
from peaksight.records import Action, Phase
from peaksight.units import GIB, MIB
from peaksight.virtual_gpu.memory.at_the_limit import MAX_FAILURES_WITHOUT_STEP, Failures

from .cards import card_with

pytestmark = pytest.mark.torch


@pytest.fixture
def small_gpu():
    """An H100 that gives 1 GiB."""
    with card_with(GIB) as gpu:
        yield gpu


def mebibytes(count):
    return torch.empty(count * MIB, dtype=torch.uint8, device="cuda")


def test_the_exception_is_torchs_with_its_text(small_gpu):
    """Word by word that of an H100 with torch 2.11 (benchmarks/truth/capped.json), with this card's numbers."""
    kept = mebibytes(600)
    with pytest.raises(torch.OutOfMemoryError) as raised:
        mebibytes(500)

    assert kept.numel() == 600 * MIB
    assert str(raised.value) == (
        "CUDA out of memory. Tried to allocate 500.00 MiB. GPU 0 has a total capacity of 1.51 GiB of which 424.00 MiB "
        "is free. Including non-PyTorch memory, this process has 1.09 GiB memory in use. Of the allocated memory "
        "600.00 MiB is allocated by PyTorch, and 0 bytes is reserved by PyTorch but unallocated. If reserved but "
        "unallocated memory is large try setting PYTORCH_CUDA_ALLOC_CONF=expandable_segments:True to avoid "
        "fragmentation.  See documentation for Memory Management  "
        "(https://docs.pytorch.org/docs/stable/notes/cuda.html#optimizing-memory-usage-with-pytorch-cuda-alloc-conf)"
    )


def test_the_cache_is_given_back_before_the_card_fails(small_gpu):
    """One retry; with fragmentation it fails although enough is free in all."""
    parts = [mebibytes(100) for _ in range(9)]
    del parts
    large = mebibytes(900)

    assert torch.cuda.memory_stats()["num_alloc_retries"] == 1
    assert torch.cuda.memory_reserved() == large.numel()
    assert small_gpu.failures.records == []


def test_a_failed_allocation_is_counted_and_recorded(small_gpu):
    """With step, phase and the person's line."""
    with pytest.raises(torch.OutOfMemoryError):
        mebibytes(2000)
    (failure,) = small_gpu.failures.records

    assert torch.cuda.memory_stats()["num_ooms"] == 1
    assert (failure.requested_bytes, failure.free_bytes) == (2000 * MIB, GIB)
    assert (failure.step, failure.phase) == (1, Phase.INIT)
    assert "test_at_the_limit.py:" in failure.source
    assert [call.action for call in small_gpu.ledger.calls] == [Action.FAILED]


def test_nothing_of_the_failed_operator_stays_alive(small_gpu):
    """Neither its results nor its temporaries, although the exception is still being handled."""
    kept = torch.empty(100 * MIB, dtype=torch.uint8, device="cuda")
    before = torch.cuda.memory_allocated()
    gc.disable()
    try:
        torch.cat([kept.half(), kept.half(), kept.half(), kept.half()])
    except torch.OutOfMemoryError:
        assert torch.cuda.memory_allocated() == before
    finally:
        gc.enable()


def test_a_script_can_go_on_with_less(small_gpu):
    """The usual halving."""
    size = 4096
    while True:
        try:
            kept = mebibytes(size)
            break
        except torch.OutOfMemoryError:
            size //= 2
            torch.cuda.empty_cache()

    assert kept.numel() == 512 * MIB
    assert len(small_gpu.failures.records) == 3


def test_a_failing_backward_names_the_line_that_called_it(small_gpu):
    """And the forward line, whose node it was."""
    weight = torch.randn(100 * MIB, device="cuda", requires_grad=True)
    loss = (weight * weight).sum()
    with pytest.raises(torch.OutOfMemoryError):
        loss.backward()
    (failure,) = small_gpu.failures.records

    assert failure.phase is Phase.BACKWARD
    assert "test_at_the_limit.py:" in failure.backward_source


def test_the_limit_is_lifted_after_as_many_failures_as_the_script_got_over():
    """So that the second run goes where the first could not."""
    with card_with(GIB, max_failures=1) as gpu:
        with pytest.raises(torch.OutOfMemoryError):
            mebibytes(2000)
        kept = mebibytes(3000)

        assert kept.numel() == gpu.ledger.allocator.allocated_bytes
        assert len(gpu.failures.records) == 1


def test_a_card_without_a_limit():
    """Nothing fails, whatever the script allows, and no cached block is given back for want of memory."""
    with card_with(GIB, max_failures=0):
        torch.cuda.set_per_process_memory_fraction(0.5)
        kept = mebibytes(3000)

        assert kept.numel() == 3000 * MIB
        assert torch.cuda.memory_stats()["num_alloc_retries"] == 0


def test_a_script_that_asks_for_ever_is_stopped(small_gpu):
    """It would hang on the card."""
    with pytest.raises(StopSimulation):
        while True:
            try:
                mebibytes(2000)
            except torch.OutOfMemoryError:
                continue

    assert len(small_gpu.failures.records) == MAX_FAILURES_WITHOUT_STEP + 1


class TestEnding:
    """Which failure ended the run."""

    @pytest.fixture
    def failures(self, small_gpu):
        for _ in range(2):
            with pytest.raises(torch.OutOfMemoryError) as raised:
                mebibytes(2000)
        self.error = raised.value
        return small_gpu.failures

    def test_the_one_that_nobody_caught(self, failures):
        assert failures.ending(self.error, 1, num_births=0) == 1

    def test_the_one_that_was_raised_in_other_words(self, failures):
        try:
            try:
                raise self.error
            except torch.OutOfMemoryError:
                raise SystemExit("out of memory: use a smaller batch") from None
        except SystemExit as error:
            assert failures.ending(error, 1, num_births=5) == 1

    def test_the_last_when_the_script_gave_up_after_it(self, failures):
        assert failures.ending(None, 3, num_births=5) == 1
        assert failures.ending(None, 0, num_births=0) == 1

    def test_none_when_the_script_went_on(self, failures):
        assert failures.ending(None, 0, num_births=5) is None

    def test_none_when_steps_followed(self, failures):
        failures.step_ended()

        assert failures.ending(ValueError("else"), 1, num_births=5) is None


def test_no_failure_ends_a_run_without_any():
    """Whatever else ended it."""
    failures = Failures(room_on(find_card("h100-80gb")), max_failures=None, backward_source=str, num_births=int)

    assert failures.ending(ValueError(), 1, num_births=0) is None


def test_a_memory_fraction_of_the_environment(monkeypatch):
    """PyTorch reserves no more, although the card has it, and says so."""
    monkeypatch.setenv("PYTORCH_CUDA_ALLOC_CONF", "per_process_memory_fraction:0.25")
    with card_with(GIB), pytest.raises(torch.OutOfMemoryError, match=r" 385\.50 MiB allowed; Of "):
        mebibytes(500)


def test_settings_are_read_at_the_first_use(monkeypatch):
    """A script may set them before it touches the card."""
    with card_with(GIB) as gpu:
        monkeypatch.setenv("PYTORCH_CUDA_ALLOC_CONF", "roundup_power2_divisions:4")
        kept = mebibytes(9)

        assert kept.untyped_storage().nbytes() == 9 * MIB
        assert torch.cuda.memory_allocated() == 10 * MIB
        (call,) = gpu.ledger.calls
        assert (call.action, call.what) == (Action.SETTINGS, "roundup_power2_divisions:4")


def test_the_cap_of_the_environment(monkeypatch):
    """A memory fraction there counts from the first use, and is told."""
    monkeypatch.setenv("PYTORCH_CUDA_ALLOC_CONF", "per_process_memory_fraction:0.25,max_split_size_mb:50")
    with card_with(GIB) as gpu:
        kept = mebibytes(100)
        total_bytes = torch.cuda.mem_get_info()[1]

        assert kept.numel() == 100 * MIB
        assert torch.cuda.get_per_process_memory_fraction() == 0.25
        assert torch.cuda.memory_stats()["max_split_size"] == 50 * MIB
        assert gpu.ledger.calls[1].bytes == total_bytes // 4
        with pytest.raises(torch.OutOfMemoryError, match="allowed; Of the allocated memory 100"):
            mebibytes(400)


def test_rejections_have_their_own_text(monkeypatch):
    """What throw_on_cudamalloc_oom rejects, nothing was released for."""
    monkeypatch.setenv("PYTORCH_CUDA_ALLOC_CONF", "throw_on_cudamalloc_oom:True")
    with card_with(GIB):
        with pytest.raises(torch.OutOfMemoryError, match=r"preemptively rejected .* Requested size: 2.00 GiB"):
            mebibytes(2048)

        assert torch.cuda.memory_stats()["num_oom_rejections"] == 1


def test_cudnn_does_without_a_workspace_that_the_card_has_no_room_for():
    """PyTorch goes on to cuDNN's next kernel; the results it cannot do without."""
    images = {"size": (32, 64, 56, 56), "device": "cuda"}
    with card_with(400 * MIB) as gpu:
        layer = nn.Conv2d(64, 64, 3, padding=1, bias=False, device="cuda")
        inputs = torch.randn(**images)
        kept = [mebibytes(220), mebibytes(12)]
        told = []
        torch._C._cuda_attach_out_of_memory_observer(lambda *numbers: told.append(numbers))
        outputs = layer(inputs.detach())

        assert (outputs.shape, len(kept), len(told)) == (inputs.shape, 2, 1)
        assert gpu.failures.records == []
        assert [call.what for call in gpu.ledger.calls if call.action is Action.DONE_WITHOUT] == ["aten::convolution"]
        with pytest.raises(torch.OutOfMemoryError):
            [layer(inputs) for _ in range(20)]
