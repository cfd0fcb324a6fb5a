"""What the engine does in place although the gradients are of a tensor subclass."""

import pytest
import torch

from tests.virtual_gpu.cards import births_on, h100, requested

pytestmark = pytest.mark.torch

SIZE = 64 * 64 * 4


class KeepsItsGradient(torch.autograd.Function):
    """Twice its input; its backward remembers the gradient that it returns."""

    kept = []  # noqa: RUF012

    @staticmethod
    def forward(ctx, x):
        """Twice `x`."""
        return x * 2

    @staticmethod
    def backward(ctx, grad):
        """Keep what is returned."""
        KeepsItsGradient.kept.append(grad * 2)
        return KeepsItsGradient.kept[-1]


def backward_births(branches):
    """The bytes taken in the backward of `branches(y)`, where y is no leaf."""
    with h100() as gpu:
        x = torch.randn(64, 64, device="cuda", requires_grad=True)
        total = branches(x * 1) * 2
        gradient = torch.ones_like(total)
        with births_on(gpu) as births:
            total.backward(gradient)
    return requested(births)


def test_gradients_are_summed_in_the_first_one():
    """The factor 2, a product for each branch and the factor 1: no block for the sum."""
    assert backward_births(lambda y: y * 2 + y * 3) == [SIZE] * 4


def test_a_gradient_that_two_branches_share_is_left_alone():
    """The gradient of y + y arrives twice as one tensor, so the sum is a new one."""
    assert backward_births(lambda y: y + y) == [SIZE] * 3


def test_a_gradient_that_the_script_holds_is_left_alone():
    """The engine may not write into what a custom function remembers."""
    assert backward_births(lambda y: y * 3 + KeepsItsGradient.apply(y)) == [SIZE] * 5
    KeepsItsGradient.kept.clear()


def test_create_graph_sums_out_of_place():
    """With create_graph autograd must see the sum."""
    with h100() as gpu:
        x = torch.randn(64, 64, device="cuda", requires_grad=True)
        total = (x * 2 + x * 3) * 2
        gradient = torch.ones_like(total)
        with births_on(gpu) as births:
            torch.autograd.grad(total, x, gradient, create_graph=True)
    assert requested(births) == [SIZE] * 4


@pytest.mark.parametrize(
    "select",
    [
        lambda x: x.gather(1, torch.zeros(64, 2, dtype=torch.int64, device="cuda")),
        lambda x: x.index_select(1, torch.zeros(2, dtype=torch.int64, device="cuda")),
        lambda x: x.take(torch.zeros(64, 2, dtype=torch.int64, device="cuda")),
        lambda x: x.topk(2).values,
        lambda x: x.masked_select(torch.eye(64, dtype=torch.bool, device="cuda")),
        lambda x: x.max(1, keepdim=True).values,
    ],
)
def test_gradients_of_a_selection_are_scattered_into_zeros(select):
    """One block as large as the input."""
    with h100() as gpu:
        selected = select(torch.randn(64, 64, device="cuda", requires_grad=True))
        gradient = torch.ones_like(selected)
        with births_on(gpu) as births:
            selected.backward(gradient)
    assert requested(births).count(SIZE) == 1


def test_a_formula_that_adds_is_left_alone():
    """The gradient of atan2 adds two squares into a third tensor."""
    with h100() as gpu:
        angle = torch.atan2(*(torch.randn(64, 64, device="cuda", requires_grad=True) for _ in range(2)))
        gradient = torch.ones_like(angle)
        with births_on(gpu) as births:
            angle.backward(gradient)
    assert [birth.op for birth in births].count("aten::add.Tensor") == 1


def test_bounds_that_are_broadcast(virtual_gpu):
    """Masks of two bounds are smaller than that of the tensor."""
    x = torch.randn(8, 4, 6, device="cuda", requires_grad=True)
    low, high = (torch.randn(4, 6, device="cuda", requires_grad=True) for _ in range(2))
    x.clamp(low, high).sum().backward()

    assert (x.grad.shape, low.grad.shape, high.grad.shape) == (x.shape, low.shape, high.shape)
