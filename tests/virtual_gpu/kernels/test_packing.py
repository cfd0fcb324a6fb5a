"""Packing padded sequences (H200, torch 2.11+cu130, 2026-11-28, benchmarks/operators: layer recurrent)."""

import pytest
import torch
from torch import nn

from ..cards import events_on

pytestmark = pytest.mark.torch


@pytest.mark.parametrize(("batch_first", "copies"), [(False, [2 * 2, 1]), (True, [3 * 3, 2 * 2, 1])])
def test_slices_are_copied(virtual_gpu, batch_first, copies):
    """Three sequences of 3, 5 and 6 steps: the steps of all are contiguous only where steps come first."""
    shape = (3, 6, 64) if batch_first else (6, 3, 64)
    padded = torch.randn(*shape, device="cuda")
    copies = [64 * 4 * rows for rows in copies]
    with events_on(virtual_gpu) as events:
        packed = nn.utils.rnn.pack_padded_sequence(padded, [6, 5, 3], batch_first=batch_first)

    # The last step, of a single sequence, is contiguous.
    assert [*copies[:-1], 14 * 64 * 4, *(-num_bytes for num_bytes in copies[:-1])] == events
    assert (14, 64) == tuple(packed.data.shape)
