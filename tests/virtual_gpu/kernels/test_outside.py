"""Memory outside the allocator: each library once a thread, and how a library fails at a full card."""

import pytest
import torch
from torch import nn

from peaksight.gpus import find_card
from peaksight.records import Action
from peaksight.units import MIB
from peaksight.virtual_gpu.device_rules import rules_for
from peaksight.virtual_gpu.kernels.outside import OutsideMemory
from peaksight.virtual_gpu.kernels.temporaries import KernelCall

from ..cards import card_with

pytestmark = pytest.mark.torch

aten = torch.ops.aten
KERNELS, CUBLAS = ("loaded kernels", 96 * MIB), ("cuBLAS", 64 * MIB)
CUDNN, CUSOLVER = ("cuDNN", 8 * MIB), ("cuSOLVER", 96 * MIB)


class Process:
    """A process on a card that has `free_bytes` left (None: as many as it wants)."""

    def __init__(self, card="h100-80gb", build="2.11+cu130", free_bytes=None):
        card = find_card(card)
        self.rules = rules_for(build, card)
        self.taken, self.failed, self.notes = [], [], []
        self.free_bytes = free_bytes
        self.outside = OutsideMemory(card, self.rules, self._take, self._fail, self._note)

    def run(self, func, *args, in_backward=False):
        """One operator; returns what it took."""
        before = len(self.taken)
        self.outside.before_launch(KernelCall(func, args, {}, None, self.rules), in_backward)
        return self.taken[before:]

    def _take(self, library, num_bytes):
        if self.free_bytes is not None and num_bytes > self.free_bytes:
            return False
        self.taken.append((library, num_bytes))
        return True

    def _note(self, *note):
        self.notes.append(note)

    def _fail(self, library, num_bytes, error):
        self.failed.append((library, num_bytes))
        raise error


@pytest.fixture
def process():
    """A process on an H100 that ran its first kernel."""
    process = Process()
    assert [KERNELS] == process.run(aten.relu.default, x())
    return process


def x(*shape, dtype=torch.float32):
    """A tensor without memory."""
    return torch.empty(shape or (4, 4), dtype=dtype, device="meta")


def convolved(*, channels=8, groups=1, layout=torch.contiguous_format):
    """The arguments of a convolution of images."""
    images, weight = x(2, channels, 8, 8).to(memory_format=layout), x(channels, channels // groups, 3, 3)
    return images, weight, None, [1, 1], [1, 1], [1, 1], False, [0, 0], groups


def test_each_library_once_a_thread(process):
    """The forward and the backward thread have a handle each; kernels are loaded for both."""
    assert [CUBLAS] == process.run(aten.mm.default, x(), x())
    assert [] == process.run(aten.addmm.default, x(4), x(), x())
    assert [CUBLAS] == process.run(aten.mm.default, x(), x(), in_backward=True)
    assert [] == process.run(aten.bmm.default, x(1, 4, 4), x(1, 4, 4), in_backward=True)
    assert [] == process.run(aten.relu.default, x(), in_backward=True)


@pytest.mark.parametrize(
    ("func", "args"),
    [
        (aten.empty.memory_format, ([4],)),
        (aten.empty_like.default, (x(),)),
        (aten.view.default, (x(), [16])),
        (aten.detach.default, (x(),)),
        (aten._to_copy.default, (torch.zeros(4),)),
        (aten.copy_.default, (x(4), torch.zeros(4))),
    ],
)
def test_what_runs_no_kernel(func, args):
    """Empty tensors, views and copies from the host leave the kernels where they are."""
    assert [] == Process().run(func, *args)


def test_the_first_kernel_comes_before_the_first_handle():
    """A matrix product as the first operator of all loads kernels, too."""
    assert [KERNELS, CUBLAS] == Process().run(aten.mm.default, x(), x())


@pytest.mark.parametrize(
    ("func", "args"),
    [
        (aten.convolution.default, convolved()),
        (aten.convolution.default, convolved(groups=8, layout=torch.channels_last)),
        (aten._cudnn_rnn.default, (x(),)),
        (aten._scaled_dot_product_cudnn_attention.default, (x(),)),
        (aten.cudnn_batch_norm.default, (x(),)),
    ],
)
def test_what_calls_cudnn(process, func, args):
    """Convolutions, recurrent layers, its attention and its batch norm."""
    assert [CUDNN] == process.run(func, *args)


def test_depthwise_convolutions_are_kernels_of_pytorch(process):
    """Unless channels come last; an ordinary one after it still takes the handle."""
    assert [] == process.run(aten.convolution.default, *convolved(groups=8))
    assert [CUDNN] == process.run(aten.convolution.default, *convolved())


def test_without_cudnn(process):
    """`torch.backends.cudnn.enabled = False` takes the operator to other kernels."""
    with torch.backends.cudnn.flags(enabled=False):
        assert [] == process.run(aten.convolution.default, *convolved())


@pytest.mark.parametrize("func", [aten._linalg_eigh.default, aten.linalg_qr.default, aten._linalg_svd.default])
def test_decompositions_call_cusolver(process, func):
    """Batches, too."""
    assert [CUSOLVER] == process.run(func, x(16, 4, 4))


def test_one_matrix_is_factored_by_cusolver_and_a_batch_by_cublas(process):
    """`torch.linalg.inv`."""
    assert [CUSOLVER] == process.run(aten.linalg_inv_ex.default, x())
    assert [CUBLAS] == process.run(aten.linalg_inv_ex.default, x(16, 4, 4))


@pytest.mark.parametrize(
    ("card", "kernels", "cublas"),
    [
        ("t4", 14, 8),
        ("a100-80gb", 78, 8),
        ("h100-pcie", 82, 64),
        ("h200", 96, 64),
        ("b200", 107, 64),
        ("rtx-5090", 92, 24),
    ],
)
def test_other_cards(card, kernels, cublas):
    """Kernels go with the size of the card, a handle of cuBLAS with its generation; what nobody measured is noted."""
    process = Process(card)
    taken = dict(process.run(aten.mm.default, x(), x()))

    assert {"loaded kernels": kernels, "cuBLAS": cublas} == {name: size // MIB for name, size in taken.items()}
    assert ([] if card.startswith("h") else ["loaded kernels", "cuBLAS"]) == [name for _, name in process.notes]


@pytest.mark.parametrize(
    ("func", "library", "text"),
    [
        (aten.mm.default, CUBLAS, "CUDA error: CUBLAS_STATUS_ALLOC_FAILED when calling `cublasCreate(handle)`"),
        (aten._cudnn_rnn.default, CUDNN, "cuDNN error: CUDNN_STATUS_INTERNAL_ERROR_DEVICE_ALLOCATION_FAILED"),
        (aten._linalg_eigh.default, CUSOLVER, "cusolver error: CUSOLVER_STATUS_INTERNAL_ERROR, when calling `cusolver"),
    ],
)
def test_a_library_at_a_full_card(process, func, library, text):
    """It fails in its own words, and again at the next call; what the process had is untouched."""
    process.free_bytes = MIB
    for _ in range(2):
        with pytest.raises(RuntimeError) as caught:
            process.run(func, x(), x())
        assert str(caught.value).startswith(text)
    assert [KERNELS] == process.taken
    assert [library, library] == process.failed

    process.free_bytes = None
    assert [library] == process.run(func, x(), x())


@pytest.mark.parametrize(("build", "is_long"), [("2.11+cu130", True), ("2.14+cu130", False)])
def test_kernels_at_a_full_card(build, is_long):
    """The error of CUDA's runtime; since torch 2.13 it no longer speaks of asynchronous errors."""
    process = Process(build=build, free_bytes=MIB)
    with pytest.raises(torch.AcceleratorError) as caught:
        process.run(aten.relu.default, x())

    assert str(caught.value).startswith("CUDA error: out of memory\nSearch for `cudaErrorMemoryAllocation' in https://")
    assert is_long == ("CUDA_LAUNCH_BLOCKING" in str(caught.value))
    assert caught.value.error_code == 2
    assert [] == process.taken


def test_a_card_that_gives_after_all():
    """The limit may be lifted when a library fails: it then has its memory."""
    process = Process(free_bytes=0)

    def lift(library, num_bytes, error):
        process.free_bytes = None

    process.outside.fail = lift
    assert [KERNELS] == process.run(aten.relu.default, x())


def outside(gpu):
    """What the libraries of `gpu` took, in order."""
    return [(call.what, call.bytes) for call in gpu.ledger.calls if call.action is Action.OUTSIDE]


def test_training_on_the_card(virtual_gpu):
    """A convolution and a linear layer: the handles of the forward, then those of the backward thread."""
    model = nn.Sequential(nn.Conv2d(3, 8, 3), nn.Flatten(), nn.Linear(288, 4)).cuda()
    assert [] == outside(virtual_gpu)
    for _ in range(2):
        model(torch.randn(2, 3, 8, 8, device="cuda")).sum().backward()

    assert [KERNELS, CUDNN, CUBLAS, CUBLAS, CUDNN] == outside(virtual_gpu)
    assert virtual_gpu.ledger.allocator.outside_bytes == 240 * MIB


def test_a_forward_only_run_has_no_handle_of_the_backward_thread(virtual_gpu):
    """Evaluation."""
    with torch.no_grad():
        nn.Linear(4, 4).cuda()(torch.randn(2, 4, device="cuda"))

    assert [KERNELS, CUBLAS] == outside(virtual_gpu)


def test_a_full_card_keeps_the_cached_blocks():
    """cuBLAS fails beside memory that PyTorch holds and does not use; the script may catch it and make room."""
    with card_with(512 * MIB) as gpu:
        a = torch.ones(4, 4, device="cuda")
        torch.empty(384 * MIB, dtype=torch.uint8, device="cuda")
        reserved = torch.cuda.memory_reserved()
        with pytest.raises(RuntimeError, match="CUBLAS_STATUS_ALLOC_FAILED"):
            a @ a

        assert torch.cuda.memory_reserved() == reserved > 384 * MIB
        assert [("cuBLAS", 64 * MIB)] == [(failure.op, failure.requested_bytes) for failure in gpu.failures.records]
        torch.cuda.empty_cache()
        a @ a
        assert [KERNELS, CUBLAS] == outside(gpu)
