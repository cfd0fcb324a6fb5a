"""The cross entropy in chunks is the cross entropy."""

import pytest
import torch
from torch import nn
from torch.nn import functional
from torch.utils._python_dispatch import TorchDispatchMode

from peaksight.overlays.apply import apply_changes
from peaksight.overlays.patches import Patches
from peaksight.records.plan import Change

pytestmark = pytest.mark.torch


def loss_and_gradient(logits, target, *, changes=(), dtype=None, module=None, **options):
    """Both, and whether all changes had an effect."""
    leaf = logits.clone().requires_grad_()
    with Patches() as patches:
        applied = apply_changes(changes, patches)
        with torch.autocast("cpu", dtype=dtype, enabled=dtype is not None):
            value = module(leaf, target) if module else functional.cross_entropy(leaf, target, **options)
        (3 * value).backward()
    return value.detach(), leaf.grad, not applied.without_effect()


CHUNKED = (Change(kind="chunked-cross-entropy", parameters={"chunks": 4}),)


@pytest.mark.parametrize("options", [{}, {"reduction": "sum"}, {"ignore_index": 2}, {"ignore_index": 0}])
@pytest.mark.parametrize("rows", [1, 7, 32])
def test_the_same_loss_and_gradient(options, rows):
    """Rows without a target count for nothing, few rows make fewer chunks."""
    torch.manual_seed(0)
    logits, target = torch.randn(rows, 11), torch.randint(3, 11, (rows,))
    target[1::2] = options.get("ignore_index", -100)

    expected = loss_and_gradient(logits, target, **options)
    found = loss_and_gradient(logits, target, changes=CHUNKED, **options)

    torch.testing.assert_close(found, expected)


def test_no_row_has_a_target():
    """A mean of nothing is no number, as in torch."""
    value, _, has_effect = loss_and_gradient(torch.randn(4, 3), torch.full((4,), -100), changes=CHUNKED)

    assert has_effect
    assert value.isnan()


@pytest.mark.parametrize("is_autocast", [True, False])
def test_low_precision(is_autocast):
    """Under autocast the loss has the precision of a float32."""
    torch.manual_seed(0)
    logits, target = torch.randn(32, 11).bfloat16(), torch.randint(11, (32,))
    dtype = torch.bfloat16 if is_autocast else None

    expected = loss_and_gradient(logits, target, dtype=dtype)
    found = loss_and_gradient(logits, target, dtype=dtype, changes=CHUNKED)

    assert found[0].dtype == expected[0].dtype
    torch.testing.assert_close(found, expected, rtol=0.04, atol=1e-4)


def test_the_module_is_reached():
    """nn.CrossEntropyLoss calls the function."""
    logits, target = torch.randn(8, 5), torch.randint(5, (8,))

    found = loss_and_gradient(logits, target, changes=CHUNKED, module=nn.CrossEntropyLoss())

    assert found[2]
    torch.testing.assert_close(found, loss_and_gradient(logits, target, module=nn.CrossEntropyLoss()))


@pytest.mark.parametrize("options", [{"label_smoothing": 0.1}, {"weight": torch.ones(5)}])
def test_what_stays_as_it_is(options):
    """Smoothed targets and weighted classes."""
    assert not loss_and_gradient(torch.randn(8, 5), torch.randint(5, (8,)), changes=CHUNKED, **options)[2]


def test_chunks_are_not_cut_again():
    """A mode such as `torch.device` finds the function by its name, which is that of the chunked one."""
    sizes = []

    class Sizes(TorchDispatchMode):
        def __torch_dispatch__(self, func, types, args=(), kwargs=None):
            if func is torch.ops.aten._log_softmax.default:
                sizes.append(len(args[0]))
            return func(*args, **(kwargs or {}))

    with torch.device("cpu"), Sizes():
        loss_and_gradient(torch.randn(32, 5), torch.randint(5, (32,)), changes=CHUNKED)

    assert sizes == [8, 8, 8, 8]
