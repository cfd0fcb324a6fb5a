"""What an operator computes and moves."""

import pytest
import torch
from torch.utils.flop_counter import FlopCounterMode

from peaksight.virtual_gpu.timing.work import launches, num_launches, touched_bytes, work_of

pytestmark = pytest.mark.torch
aten = torch.ops.aten


def meta(*shape, dtype=torch.float32):
    return torch.empty(shape, dtype=dtype, device="meta")


def work(func, *args, **kwargs):
    return work_of(func, args, kwargs, func(*args, **kwargs))


def test_flops_are_torchs():
    """As FlopCounterMode counts them."""
    a, b = meta(8, 16), meta(16, 4)
    with FlopCounterMode(display=False) as counter:
        a @ b

    assert counter.get_total_flops() == work(aten.mm.default, a, b).flops == 2 * 8 * 16 * 4


@pytest.mark.parametrize(
    ("call", "num_floats"),
    [
        ((aten.add.Tensor, meta(4, 8), meta(4, 8)), 3 * 32),
        ((aten.add_.Tensor, meta(4, 8), meta(8)), 2 * 32 + 8),
        ((aten.copy_.default, meta(4, 8), meta(4, 8)), 2 * 32),
        ((aten.zero_.default, meta(4, 8)), 32),
        ((aten.zeros_like.default, meta(4, 8)), 32),
        ((aten.add.Tensor, meta(4, 8), meta(4, 1).expand(4, 8)), 2 * 32 + 4),
        ((aten._foreach_add_.Scalar, [meta(4, 8), meta(2)], 1.0), 2 * 34),
    ],
    ids=lambda value: str(value[0]) if isinstance(value, tuple) else "",
)
def test_bytes_are_those_read_and_written(call, num_floats):
    """What is only written is not read, and what is expanded is there once."""
    assert work(*call).bytes == 4 * num_floats


def test_an_embedding_reads_the_rows_that_it_returns():
    """However large its table is."""
    indices = torch.empty(3, dtype=torch.int64, device="meta")

    assert work(aten.embedding.default, meta(1000, 8), indices).bytes == 4 * 3 * 8 + 3 * 8 + 4 * 3 * 8


def test_arguments_that_a_formula_does_not_take():
    """`_efficient_attention_forward` has the heads after the positions, where torch's formula asserts them before."""
    query, key = meta(2, 11, 32, 8), meta(2, 32, 32, 8)
    args = (query, key, key, None, None, None, None, None, 0.0, 0)

    assert work_of(aten._efficient_attention_forward.default, args, {}, (query,)).flops == 0


def test_sparse_tensors():
    """Only what is strided counts."""
    sparse = torch.eye(4).to_sparse()

    assert work_of(aten.add.Tensor, (meta(4), sparse), {}, meta(4)).bytes == 2 * 16
    assert touched_bytes(sparse) == 0


def test_views_and_fresh_memory_launch_nothing():
    """Everything else does."""
    assert not launches(aten.t.default)
    assert not launches(aten.empty.memory_format)
    assert launches(aten.mm.default)


def test_launches_of_lists():
    """By the number of tensors, and by their size: a block takes 65536 elements, a launch 320 blocks."""
    small = [meta(2) for _ in range(111)]

    assert num_launches((small, 1.0), small) == 2
    assert num_launches((small, small), small) == 2
    assert num_launches((small, small), [meta(2) for _ in small]) == 3
    assert num_launches(([meta(65536 * 320)], 1.0), []) == 1
    assert num_launches(([meta(65536 * 321)], 1.0), []) == 2


def test_touched_bytes_of_a_transposed_tensor():
    """All of it."""
    assert touched_bytes(meta(4, 8).t()) == 128


def test_a_causal_mask_skips_half():
    """The flops stay those that torch counts."""
    query = meta(1, 2, 16, 8)
    args = (query, query, query, None, True, 0.0)

    causal = work_of(aten._scaled_dot_product_efficient_attention.default, (*args, True), {}, (query,))
    full = work_of(aten._scaled_dot_product_efficient_attention.default, (*args, False), {}, (query,))

    assert (causal.skips_half, full.skips_half) == (True, False)
    assert causal.flops == full.flops > 0
