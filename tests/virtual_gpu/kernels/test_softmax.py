"""What softmax takes: the events of an H200, torch 2.11+cu130, 2026-11-28."""

import pytest
import torch

from tests.virtual_gpu.cards import card_of, events_on

pytestmark = pytest.mark.torch

SIZE = 24 * 40 * 64 * 4


def backward_events(function):
    """The backward of `function` on a leaf."""
    with card_of("h200") as gpu:
        y = function(torch.randn(24, 40, 64, device="cuda", requires_grad=True))
        gradient = torch.ones_like(y)
        with events_on(gpu) as backward:
            y.backward(gradient)
    return backward


def test_backward_multiplies_first():
    """The product of gradient and output is a tensor of its own; log_softmax needs none."""
    assert [SIZE, SIZE, -SIZE] == backward_events(lambda x: x.softmax(-1))
    assert [SIZE] == backward_events(lambda x: x.log_softmax(-1))


def test_transposed_input_is_copied():
    """The kernels read rows (ATen/native/cuda/SoftMax.cu)."""
    with card_of("h200") as gpu:
        x = torch.randn(24, 40, 64, device="cuda").transpose(1, 2)
        with events_on(gpu) as forward:
            out = x.softmax(-1)

    assert [SIZE, SIZE, -SIZE] == forward
    assert out.is_contiguous()


@pytest.mark.parametrize(("dtype", "copied"), [(torch.float16, []), (torch.bfloat16, [SIZE])])
@pytest.mark.parametrize("function", ["softmax", "log_softmax"])
def test_float16_needs_no_copy_in_single_precision(function, dtype, copied):
    """Under autocast its kernel reads float16 and writes float32 (`half_to_float`); bfloat16 is copied first."""
    with card_of("h200") as gpu:
        x = torch.randn(24, 40, 64, device="cuda", dtype=dtype, requires_grad=True)
        with torch.autocast("cuda", dtype), events_on(gpu) as forward:
            y = getattr(x, function)(-1)
        gradient = torch.ones_like(y)
        with events_on(gpu) as backward:
            y.backward(gradient)

    assert [*copied, SIZE, *(-each for each in copied)] == forward
    assert y.dtype == torch.float32
    if not copied:
        product = [SIZE, -SIZE] if function == "softmax" else []
        assert [SIZE // 2, *product] == backward
