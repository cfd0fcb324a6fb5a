"""Cells, against what an H200 allocates (torch 2.11+cu130, 2026-11-28, benchmarks/operators: layer cells)."""

import pytest
import torch
from torch import nn

from ..cards import events_on

pytestmark = pytest.mark.torch


def run_on(gpu, cell, dtype=torch.float32):
    """The events of a forward and a backward pass of a cell from 256 to 512 over 256 rows."""
    cell = cell.to("cuda", dtype)
    rows = torch.randn(256, 256, device="cuda", dtype=dtype, requires_grad=True)
    (cell(rows)[0]).sum().backward()  # the workspaces of cuBLAS stay
    cell.zero_grad()
    rows.grad = None
    with events_on(gpu) as forward:
        out = cell(rows)
    outputs = out if isinstance(out, tuple) else (out,)
    gradients = [torch.ones_like(output) for output in outputs]
    with events_on(gpu) as backward:
        torch.autograd.backward(outputs, gradients)
    return forward, backward


@pytest.mark.parametrize("bias", [True, False])
def test_lstm_cell(virtual_gpu, bias):
    """The gates of input and state, and a workspace of their size that backward reads."""
    forward, backward = run_on(virtual_gpu, nn.LSTMCell(256, 512, bias=bias))

    of_bias, its_copy = ([8192], [8192]) if bias else ([], [])
    assert [524288, 2097152, 2097152, 2097152, 524288, 524288] == forward
    assert backward == [
        2097152, 524288, *of_bias, -524288, -2097152, -2097152, -2097152, *its_copy, 4194304, -524288, 2097152, 262144,
        -2097152,
    ]  # fmt: skip


@pytest.mark.parametrize("dtype", [torch.float16, torch.bfloat16])
def test_gru_cell(virtual_gpu, dtype):
    """The workspace holds five states."""
    forward, backward = run_on(virtual_gpu, nn.GRUCell(256, 512), dtype)

    assert [262144, 786432, 786432, 1310720, 262144] == forward
    assert backward == [
        786432, 786432, 262144, 3072, 3072, -262144, -786432, -786432, -1310720, 1572864, -786432, -262144, 786432,
        131072, -786432,
    ]  # fmt: skip


def test_gru_cell_without_biases(virtual_gpu):
    """There are no sums for their gradients."""
    _, backward = run_on(virtual_gpu, nn.GRUCell(256, 512, bias=False))

    assert [1572864, 1572864, 524288, -524288] == backward[:4]


def test_autocast(virtual_gpu):
    """The cell runs in half precision."""
    cell = nn.LSTMCell(8, 16).cuda()
    with torch.autocast("cuda"):
        hy, cy = cell(torch.randn(4, 8, device="cuda"))

    assert (torch.float16, torch.float16) == (hy.dtype, cy.dtype)
    assert hy.grad_fn.name() == "ThnnFusedLstmCellBackward0"


def test_inference_mode(virtual_gpu):
    """The kernel is the same."""
    cell = nn.GRUCell(8, 16).cuda()
    with torch.inference_mode():
        rows = torch.randn(4, 8, device="cuda")
        with events_on(virtual_gpu) as events:
            cell(rows)

    assert 5 * 16 * 4 * 4 in events
