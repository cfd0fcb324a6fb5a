"""Staging buffers of split reductions, as the H100 of benchmarks/truth took them."""

import pytest
import torch

from peaksight.virtual_gpu.kernels.reductions import Split, coalesced, split_reduction

from ..cards import births_on, h100, requested

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
