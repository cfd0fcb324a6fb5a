"""Copies of operands that cuBLAS cannot read: the events of an H200, torch 2.11+cu130, 2026-11-29."""

import pytest
import torch

from tests.virtual_gpu.cards import card_of, events_on

pytestmark = pytest.mark.torch

WORKSPACE = 33_554_432


def events_of(make, product):
    """What `product` of the tensors of `make()` does on an H200."""
    with card_of("h200") as gpu:
        operands = make()
        with events_on(gpu) as events:
            result = product(*operands)
    del result
    return events


def test_einsum_over_channels():
    """Neither dimension of the weights is dense: they are copied before the workspace is taken (fourier_operator)."""

    def modes():
        spectrum = torch.randn(16, 48, 128, 65, dtype=torch.cfloat, device="cuda")[:, :, :16, :16]
        return spectrum, torch.randn(48, 48, 16, 16, dtype=torch.cfloat, device="cuda")

    events = events_of(modes, lambda a, b: torch.einsum("bixy,ioxy->boxy", a, b))

    assert [1_572_864, 1_572_864, 4_718_592, WORKSPACE, -4_718_592] == events[:5]


def test_expanded_gradient():
    """Elements that repeat are copied: the gradient of a sum (physics)."""

    def gradient():
        return torch.ones((), dtype=torch.double, device="cuda").expand(20_000, 1), torch.ones(
            1, 256, dtype=torch.double, device="cuda"
        )

    events = events_of(gradient, torch.mm)

    assert [40_960_000, 160_000, WORKSPACE, -160_000] == events


@pytest.mark.parametrize(
    ("shape", "strides", "is_copied"),
    [
        ((8, 6), (6, 1), False),
        ((8, 6), (1, 8), False),
        ((8, 6), (12, 1), False),
        ((8, 6), (1, 12), False),
        ((8, 6), (12, 2), True),
        ((8, 6), (0, 1), True),
        ((8, 6), (3, 1), True),
    ],
)
@pytest.mark.parametrize("batches", [None, 3])
def test_which_are_copied(shape, strides, is_copied, batches):
    """One dimension must be dense, and rows may not overlap."""
    if batches:
        shape, strides = (batches, *shape), (200, *strides)

    def operands():
        memory = torch.randn(1000, device="cuda")
        return memory.as_strided(shape, strides), torch.randn(*shape[:-2], 6, 5, device="cuda")

    events = events_of(operands, torch.bmm if batches else torch.mm)
    copy = [(batches or 1) * 8 * 6 * 4] if is_copied else []

    assert [(batches or 1) * 8 * 5 * 4, *copy, WORKSPACE, *(-size for size in copy)] == events


@pytest.mark.parametrize(("is_transposed", "is_copied"), [(False, True), (True, False)])
def test_conjugates(is_transposed, is_copied):
    """cuBLAS reads the conjugate of what it transposes."""

    def operands():
        matrix = torch.randn(8, 8, dtype=torch.cfloat, device="cuda").conj()
        return torch.randn(4, 8, dtype=torch.cfloat, device="cuda"), matrix.T if is_transposed else matrix

    events = events_of(operands, torch.mm)
    copy = [512] if is_copied else []

    assert [4 * 8 * 8, *copy, WORKSPACE, *(-size for size in copy)] == events
