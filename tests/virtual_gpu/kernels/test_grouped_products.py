"""Products of groups of rows, which a mixture of experts takes."""

import pytest
import torch
import torch.nn.functional as F

from ..cards import births_on, requested

pytestmark = pytest.mark.torch

ROWS, WIDTH, OUT, GROUPS = 64, 32, 48, 4


def offsets():
    """Where each of four groups of 16 rows ends."""
    return torch.arange(1, GROUPS + 1, device="cuda", dtype=torch.int32) * (ROWS // GROUPS)


@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16, torch.float16])
def test_experts(virtual_gpu, dtype):
    """The rows of each expert times its matrix, forward and backward, in every precision that the card takes."""
    rows = torch.randn(ROWS, WIDTH, device="cuda", dtype=dtype, requires_grad=True)
    experts = torch.randn(GROUPS, WIDTH, OUT, device="cuda", dtype=dtype, requires_grad=True)
    with births_on(virtual_gpu) as births:
        out = F.grouped_mm(rows, experts, offs=offsets())
    out.sum().backward()

    assert ROWS * OUT * dtype.itemsize in requested(births)
    assert (ROWS, OUT) == tuple(out.shape)
    assert experts.shape == experts.grad.shape


def test_rows_begin_at_16_bytes(virtual_gpu):
    """Ten columns of float32 take the room of twelve."""
    rows, experts = torch.randn(ROWS, WIDTH, device="cuda"), torch.randn(GROUPS, WIDTH, 12, device="cuda")
    with births_on(virtual_gpu) as births:
        out = F.grouped_mm(rows, experts[..., :10], offs=offsets())

    assert (12, 1) == out.stride()
    assert ROWS * 12 * 4 - 8 in requested(births)


def test_matrices(virtual_gpu):
    """Without groups, one product for each pair of matrices."""
    left, right = torch.randn(3, 8, WIDTH, device="cuda"), torch.randn(3, WIDTH, OUT, device="cuda")

    assert (3, 8, OUT) == tuple(F.grouped_mm(left, right).shape)
