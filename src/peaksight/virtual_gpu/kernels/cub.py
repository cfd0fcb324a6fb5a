"""The temporary storage that CUB's device-wide algorithms ask for, in bytes.

Sources: cub/device/dispatch and cub/device/dispatch/tuning of CUDA 13.0 (CCCL 3.0), with the tunings of Hopper. To
the byte what an H200 took (torch 2.11+cu130, 2026-11-28, benchmarks/operators).

Limitations:
    Other cards have other tile sizes: there, the look-back tables beside a sort's second keys and values differ by
    some KiB.
"""

import torch

ALIGNMENT = 256
PADDING_TILES = 32
OFFSET_BYTES = 8
MAX_TILE_BYTES = 48 * 1024
RADIX_BITS = 8
RADIX_DIGITS = 1 << RADIX_BITS
SINGLE_TILE = (256, 19)
# Threads of a block and 4-byte items of a thread, by the bytes of keys below four bytes and of values.
SMALL_KEYS = {(1, 0): (512, 19), (2, 0): (512, 19), (1, 8): (384, 18), (2, 8): (512, 23)}
SCAN_TILES = {1: 128 * 30, 2: 128 * 30, 4: 128 * 15, 8: 128 * 7}
SELECT_TILE = 384 * 11
REDUCE_TILE = 256 * 16
REDUCE_BLOCKS_PER_MULTIPROCESSOR = 8 * 5
WORD_BYTES = {1: 4, 2: 4, 4: 8, 8: 16}
SMALLEST = 1


def aliased(*sizes: int) -> int:
    """One block for several parts, each aligned."""
    return sum(_aligned(size) for size in sizes) + ALIGNMENT - 1


def radix_sort(num_items: int, key: torch.dtype, value_bytes: int = 0, num_bits: int | None = None) -> int:
    """DeviceRadixSort by the lowest `num_bits`, which leaves its input alone; keys only without `value_bytes`."""
    if num_items <= _tile(*SINGLE_TILE, max(key.itemsize, value_bytes)):
        return SMALLEST
    num_passes = -(-(8 * key.itemsize if num_bits is None else num_bits) // RADIX_BITS)
    num_blocks = -(-num_items // _tile(*_onesweep(key, value_bytes), max(key.itemsize, value_bytes)))
    second = num_items if num_passes > 1 else 0
    return aliased(
        OFFSET_BYTES * num_passes * RADIX_DIGITS, 4 * num_blocks * RADIX_DIGITS, second * key.itemsize,
        second * value_bytes, 4 * num_passes,
    )  # fmt: skip


def segmented_sort(num_items: int, key: torch.dtype, value_bytes: int) -> int:
    """DeviceSegmentedRadixSort: the second keys and values."""
    return aliased(num_items * key.itemsize, num_items * value_bytes)


def scan(num_items: int, accumulator: torch.dtype) -> int:
    """DeviceScan."""
    num_bytes = accumulator.itemsize
    num_tiles = -(-num_items // SCAN_TILES[num_bytes])
    if accumulator in (torch.float16, torch.bfloat16):
        return aliased(_tile_states(num_tiles, 4, num_bytes))
    return aliased(_tile_states(num_tiles, WORD_BYTES[num_bytes]))


def scan_by_key(num_items: int) -> int:
    """DeviceScan::InclusiveSumByKey of 4-byte numbers by 4-byte keys."""
    num_tiles = -(-num_items // (128 * 15))
    return aliased(4 * (num_tiles + 1), 16 * (num_tiles + PADDING_TILES))


def select(num_items: int, offset_bytes: int = 4) -> int:
    """DeviceSelect::Flagged, Unique and UniqueByKey."""
    return aliased(_tile_states(-(-num_items // SELECT_TILE), WORD_BYTES[offset_bytes]))


def reduce(num_items: int, num_multiprocessors: int) -> int:
    """DeviceReduce of 4-byte sums."""
    if num_items <= REDUCE_TILE:
        return SMALLEST
    return aliased(4 * num_multiprocessors * REDUCE_BLOCKS_PER_MULTIPROCESSOR)


def _aligned(num_bytes: int) -> int:
    return -(-num_bytes // ALIGNMENT) * ALIGNMENT


def _tile_states(num_tiles: int, description_bytes: int, payload_bytes: int = 0) -> int:
    states = num_tiles + PADDING_TILES
    return aliased(states * description_bytes, states * payload_bytes, states * payload_bytes)


def _tile(threads: int, items: int, item_bytes: int) -> int:
    """How many items a thread block takes at a time: agents scale what is tuned for 4-byte items."""
    items = max(1, items * 4 // max(4, item_bytes))
    warps_in_shared_memory = -(-(MAX_TILE_BYTES // (item_bytes * items)) // 32)
    return min(threads, 32 * warps_in_shared_memory) * items


def _onesweep(key: torch.dtype, value_bytes: int) -> tuple[int, int]:
    if key.itemsize == 8:
        return 384, 24 if value_bytes == 8 else 30
    if key.itemsize == 4:
        return 384, 29 if value_bytes == 8 else 18 if key == torch.float32 else 19
    return SMALL_KEYS[key.itemsize, value_bytes]
