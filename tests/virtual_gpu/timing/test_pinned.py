"""Page-locked memory that copies to the host were given."""

import gc

import pytest
import torch

from peaksight.virtual_gpu.timing.pinned import BYTES_PINNED_PER_SECOND, PinnedMemory

pytestmark = pytest.mark.torch
MIB = 1 << 20


def of_size(num_bytes):
    return torch.empty(num_bytes, dtype=torch.uint8)


def test_a_block_serves_again_when_no_stream_uses_it():
    """New ones take the host's time, by the next power of two; one that is still written or not free is no use."""
    memory = PinnedMemory()
    tensor = of_size(3 * MIB)

    assert memory.take(tensor, now=0.0) == 4 * MIB / BYTES_PINNED_PER_SECOND
    assert memory.take(tensor, now=0.0) == 0.0

    memory.use(tensor, until=5.0)
    other = of_size(4 * MIB)

    assert memory.take(other, now=9.0) > 0.0

    del tensor
    gc.collect()

    assert memory.take(of_size(MIB), now=9.0) > 0.0
    assert memory.take(of_size(4 * MIB), now=1.0) > 0.0

    again = of_size(4 * MIB)

    assert memory.take(again, now=9.0) == 0.0
