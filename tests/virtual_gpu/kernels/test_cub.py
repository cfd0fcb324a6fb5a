"""The temporary storage of CUB, against what an H200 took (torch 2.11+cu130, 2026-11-28, benchmarks/operators)."""

import pytest
import torch

from peaksight.virtual_gpu.kernels import cub

pytestmark = pytest.mark.torch

MULTIPROCESSORS = 132
FLOAT, HALF, INT64, BOOL = torch.float32, torch.bfloat16, torch.int64, torch.bool


@pytest.mark.parametrize(
    ("num_items", "key", "value_bytes", "num_bits", "measured_bytes"),
    [
        (1000, INT64, 8, None, 1), (3000, INT64, 8, None, 66_047), (20_000, INT64, 8, None, 342_015),
        (200_000, INT64, 8, None, 3_261_951), (200_000, INT64, 8, 13, 3_249_663), (100_000, INT64, 8, 36, 1_633_279),
        (300_000, FLOAT, 8, None, 3_666_175), (300_000, HALF, 8, None, 3_059_967), (8000, BOOL, 8, None, 5_631),
        (100_000, INT64, 0, None, 835_327), (320_000, INT64, 0, 6, 59_903),
    ],
)  # fmt: skip
def test_radix_sort(num_items, key, value_bytes, num_bits, measured_bytes):
    """One tile needs nothing; more need a second buffer for keys and values, unless one pass is enough."""
    assert measured_bytes == cub.radix_sort(num_items, key, value_bytes, num_bits)


@pytest.mark.parametrize(("key", "measured_bytes"), [(FLOAT, 18_000_383), (HALF, 15_000_319)])
def test_segmented_sort(key, measured_bytes):
    """A second buffer for keys and values."""
    assert measured_bytes == cub.segmented_sort(300 * 5000, key, 8)


@pytest.mark.parametrize(
    ("num_items", "accumulator", "measured_bytes"),
    [(1000, INT64, 1279), (16_384, INT64, 1535), (100_000, INT64, 2815), (1, FLOAT, 1023), (1, HALF, 1279)],
)
def test_scan(num_items, accumulator, measured_bytes):
    """The state of every tile."""
    assert measured_bytes == cub.scan(num_items, accumulator)


@pytest.mark.parametrize(
    ("num_items", "offset_bytes", "measured_bytes"), [(1000, 4, 1023), (0, 4, 767), (200_000, 8, 1791)]
)
def test_select(num_items, offset_bytes, measured_bytes):
    """The state of every tile, as wide as the positions."""
    assert measured_bytes == cub.select(num_items, offset_bytes)


@pytest.mark.parametrize(("num_items", "measured_bytes"), [(4096, 1), (100_000, 21_503)])
def test_reduce(num_items, measured_bytes):
    """A sum for each block that fits the card."""
    assert measured_bytes == cub.reduce(num_items, MULTIPROCESSORS)
