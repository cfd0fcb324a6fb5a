"""Staging buffers of split reductions, as the H100 of benchmarks/truth took them."""

import pytest
import torch

from peaksight.virtual_gpu.kernels.reductions import Split, coalesced, split_reduction

from ..cards import births_on, card_of, events_on, h100, requested

pytestmark = pytest.mark.torch

H100_MULTIPROCESSORS = 132


@pytest.mark.parametrize(
    ("shape", "buffer_bytes", "semaphore_bytes"),
    [
        ((6304, 768), 38_928_384, 24),
        ((2048, 768), 12_582_912, 24),
        ((8, 768), 0, 0),
    ],
)
def test_bias_gradient(shape, buffer_bytes, semaphore_bytes):
    """The sum over the rows of a contiguous matrix: six columns of blocks, of as many blocks as the rows ask for."""
    rows, columns = shape
    split = split_reduction([rows, columns], [columns, 1], [0], H100_MULTIPROCESSORS)

    assert Split(buffer_bytes, semaphore_bytes) == split


@pytest.mark.parametrize("shape", [(0, 4), (4, 0)])
def test_empty(shape):
    """Nothing to reduce takes nothing."""
    assert Split() == split_reduction(list(shape), [max(shape[1], 1), 1], [0], H100_MULTIPROCESSORS)


def test_one_dimension_of_one():
    """A reduction over dimensions of size one is a copy."""
    assert Split() == split_reduction([1, 768], [768, 1], [0], H100_MULTIPROCESSORS)


def test_coalesced():
    """Neighbouring dimensions become one where they lie one behind the other."""
    assert [(24, 1)] == coalesced([2, 3, 4], [12, 4, 1], [0, 1, 2])
    assert [(4, 1), (2, 12)] == coalesced([2, 3, 4], [12, 4, 1], [0, 2])
    assert [(6, 4)] == coalesced([2, 3, 4], [12, 4, 1], [0, 1])


def test_more_multiprocessors_split_more():
    """A card with more multiprocessors is given no fewer blocks."""
    small = split_reduction([65536, 64], [64, 1], [0], 40)
    large = split_reduction([65536, 64], [64, 1], [0], H100_MULTIPROCESSORS)

    assert small.buffer_bytes <= large.buffer_bytes


def test_wide_accumulators_take_twice_the_bytes():
    """float64 and int64 accumulate in eight bytes."""
    four, eight = (
        split_reduction([6304, 768], [768, 1], [0], H100_MULTIPROCESSORS, accumulator_bytes=size) for size in (4, 8)
    )

    assert 2 * four.buffer_bytes == eight.buffer_bytes


@pytest.mark.parametrize(
    "reduce",
    [
        lambda x: x.sum(0),
        lambda x: x.sum(0, keepdim=True),
        lambda x: x.mean(0),
        lambda x: x.amax(0),
        lambda x: torch.linalg.vector_norm(x, dim=0),
        lambda x: x.sum(dim=(0,), dtype=torch.float32),
    ],
)
def test_buffers_are_taken_and_given_back(reduce):
    """The output is 3,072 bytes; the buffer and the semaphores live for the length of the kernel."""
    with h100() as gpu:
        x = torch.empty(2048, 768, device="cuda")
        with births_on(gpu) as births:
            reduced = reduce(x)
        alive = [birth for birth in births if birth.died is None]

    assert [3072, 12_582_912, 24] == requested(births)
    assert [3072] == requested(alive)
    assert 768 == reduced.numel()


def test_gradient_of_a_bias():
    """nn.Linear's backward sums the gradient of its output over 2,048 rows."""
    with h100() as gpu:
        layer = torch.nn.Linear(64, 768).cuda()
        out = layer(torch.empty(2048, 64, device="cuda"))
        with births_on(gpu) as births:
            out.backward(torch.empty_like(out))

    assert 12_582_912 in requested(b for b in births if b.op == "aten::sum.dim_IntList")


ROWS = (4096, 768)
LONG = (100_000, 64)


@pytest.mark.parametrize(
    ("shape", "dtype", "reduce", "expected"),
    [
        (ROWS, torch.float32, lambda x: x.amax(0), [3072, 25_165_824, 24, -24, -25_165_824]),
        (ROWS, torch.float16, lambda x: x.amax(0), [1536, 12_582_912, 24, -24, -12_582_912]),
        (ROWS, torch.float16, lambda x: x.max(), [2, 768, 4, -4, -768]),
        (LONG, torch.float16, lambda x: x.any(), [1, 1056, 4, -4, -1056]),
        (ROWS, torch.float32, lambda x: x.argmax(0), [6144, 100_663_296, 24, -24, -100_663_296]),
        (LONG, torch.float16, lambda x: x.max(0)[0], [128, 512, 51_249_152, 4, -4, -51_249_152, -512]),
        (ROWS, torch.float32, lambda x: x.var(0), [3072, 100_663_296, 24, -24, -100_663_296]),
        (LONG, torch.bfloat16, lambda x: x.std(), [2, 8448, 4, -4, -8448]),
        (LONG, torch.bool, lambda x: x.sum(0), [512, 51_200_000, 25_624_576, 4, -4, -25_624_576, -51_200_000]),
        (ROWS, torch.bool, lambda x: x.sum(-1), [32_768, 25_165_824, -25_165_824]),
    ],
)
def test_accumulators(shape, dtype, reduce, expected):
    """The type in which each operator accumulates; a mask is summed up as int64 (H200, torch 2.11+cu130)."""
    with card_of("h200") as gpu:
        x = torch.zeros(shape, device="cuda", dtype=dtype)
        with events_on(gpu) as events:
            reduced = reduce(x)

    assert expected == events
    assert reduced.device.type == "cuda"


WIDE = (40_000, 20_000)
LONGER = (60_000, 20_000)


@pytest.mark.parametrize(
    ("shape", "dtype", "reduce", "expected"),
    [
        (WIDE, torch.float32, lambda x: x.sum(), [4, *2 * [12_208, 4, -4, -12_208]]),
        (WIDE, torch.float32, lambda x: x.sum(0), [80_000, *2 * [204_800_000, 628, -628, -204_800_000]]),
        (WIDE, torch.float32, lambda x: x.argmax(-1), [320_000, 640_000, -640_000]),
        (WIDE, torch.float32, lambda x: x.var(), [4, 16, *2 * [48_832, 4, -4, -48_832], -16]),
        (LONGER, torch.bfloat16, lambda x: x.sum(-1), [120_000, 240_000, -240_000]),
        (LONGER, torch.bfloat16, lambda x: x.sum(dtype=torch.float32), [4, *2 * [18_312, 4, -4, -18_312]]),
        (LONGER, torch.bfloat16, lambda x: x.amax(0), [40_000, *2 * [153_600_000, 628, -628, -153_600_000]]),
        (
            (60_000, 40_000), torch.bool, lambda x: x.sum(),
            [8, 19_200_000_000, *16 * [9160, 4, -4, -9160], -19_200_000_000],
        ),
    ],
)  # fmt: skip
def test_more_than_32_bits(shape, dtype, reduce, expected):
    """Tensors of 2 GiB and more are reduced in parts, into accumulators where the result is narrower (H200)."""
    with card_of("h200") as gpu:
        x = torch.empty(shape, device="cuda", dtype=dtype)
        with events_on(gpu) as events:
            reduced = reduce(x)

    assert expected == events
    assert reduced.device.type == "cuda"
