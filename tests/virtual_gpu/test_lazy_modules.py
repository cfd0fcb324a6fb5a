"""Lazy modules take their shapes from the first batch."""

import pytest
import torch
from torch import nn

from .cards import births_on, requested

pytestmark = pytest.mark.torch

LAYERS = {
    "linear": (lambda: nn.LazyLinear(8), (4, 5), [(8, 5), (8,)]),
    "convolution": (lambda: nn.LazyConv2d(8, 3), (4, 3, 9, 9), [(8, 3, 3, 3), (8,)]),
    "transposed": (lambda: nn.LazyConvTranspose1d(8, 3), (4, 3, 9), [(3, 8, 3), (8,)]),
    "norm": (lambda: nn.LazyBatchNorm2d(), (4, 3, 9, 9), [(3,), (3,), (3,), (3,), ()]),
}


@pytest.mark.parametrize("layer", LAYERS)
def test_parameters_and_buffers(virtual_gpu, layer):
    """On the card, where the module was moved before the first batch."""
    make, shape, expected = LAYERS[layer]
    module = make().cuda()
    module(torch.randn(shape, device="cuda")).sum().backward()

    tensors = [*module.parameters(), *module.buffers()]
    assert [tuple(tensor.shape) for tensor in tensors] == expected
    assert all(tensor.is_cuda for tensor in tensors)
    assert not isinstance(module, nn.modules.lazy.LazyModuleMixin)
    assert all(parameter.grad.shape == parameter.shape for parameter in module.parameters())


def test_a_dry_run_on_the_host(virtual_gpu):
    """As the tutorials have it; then the module is moved, and trained."""
    module = nn.Sequential(nn.LazyLinear(64), nn.ReLU(), nn.LazyLinear(2))
    module(torch.randn(1, 300))
    module.cuda()
    optimizer = torch.optim.AdamW(module.parameters())
    module(torch.randn(4, 300, device="cuda")).sum().backward()
    with births_on(virtual_gpu) as births:
        optimizer.step()

    assert requested(births)[:2] == [4 * 64 * 300] * 2


def test_it_becomes_a_parameter_of_its_type(virtual_gpu):
    """`half` before the first batch decides the type; nothing is allocated until then."""
    with births_on(virtual_gpu) as births:
        module = nn.LazyLinear(4, bias=False).half().to("cuda")
    assert requested(births) == []

    module(torch.ones(2, 256, device="cuda", dtype=torch.float16))
    assert (module.weight.dtype, module.weight.shape) == (torch.float16, (4, 256))
    assert isinstance(module.weight, nn.Parameter)
    assert module.state_dict()["weight"].shape == (4, 256)


@pytest.mark.parametrize("as_default", [False, True], ids=["by argument", "by default"])
def test_made_on_the_card(virtual_gpu, as_default):
    """With `device=`, or where all tensors are made there; the objects that an optimizer has stay the same."""
    with torch.device("cuda" if as_default else "cpu"):
        place = {} if as_default else {"device": "cuda"}
        net = nn.Sequential(nn.LazyConv2d(8, 3, **place), nn.LazyBatchNorm2d(**place), nn.Flatten())
    before = list(net.parameters())
    net(torch.ones(2, 3, 8, 8, device="cuda")).sum().backward()

    assert all(one is other for one, other in zip(before, net.parameters(), strict=True))
    assert all(each.is_cuda and each.grad.is_cuda for each in before)
    assert net[1].running_mean.is_cuda
