"""`torch.compile`: PyTorch's own compiler plans the memory, and its programs run on the virtual GPU."""

import pytest
import torch
import torch.nn.functional as F
from torch import nn
from torch.utils._triton import has_triton_package

from .cards import births_on, requested, slugs

pytestmark = [pytest.mark.torch]
has_triton = pytest.mark.skipif(not has_triton_package(), reason="Inductor writes for Triton, which is not installed")

ROWS, WIDTH = 256, 512
INPUT_BYTES, HIDDEN_BYTES, WEIGHT_BYTES = ROWS * WIDTH * 4, 4 * ROWS * WIDTH * 4, 4 * WIDTH * WIDTH * 4


class Feed(nn.Module):
    """Three operators of which two are pointwise."""

    def __init__(self):
        super().__init__()
        self.up, self.down = nn.Linear(WIDTH, 4 * WIDTH, bias=False), nn.Linear(4 * WIDTH, WIDTH, bias=False)

    def forward(self, x):
        """A loss."""
        return self.down(F.gelu(self.up(x)) * 2).square().mean()


def batch():
    """An input without a gradient."""
    return torch.randn(ROWS, WIDTH, device="cuda")


@has_triton
def test_fused_operators_leave_one_result(virtual_gpu):
    """The first product, and what GELU and the doubling make of it; eagerly there are two more."""
    model = Feed().cuda()
    compiled = torch.compile(model)
    loss = compiled(batch())
    with births_on(virtual_gpu) as forward:
        loss = compiled(batch())

    assert [INPUT_BYTES, HIDDEN_BYTES, HIDDEN_BYTES, INPUT_BYTES] == [n for n in requested(forward) if n >= INPUT_BYTES]
    loss.backward()
    assert model.up.weight.grad.shape == model.up.weight.shape
    assert "compiled" in slugs(virtual_gpu)
    assert "compile" not in slugs(virtual_gpu)


@has_triton
def test_programs_have_lines_and_modules(virtual_gpu):
    """Each allocation belongs to the line and the module of the operators that it was fused of, in backward too."""
    model = Feed().cuda()
    compiled = torch.compile(model)
    compiled(batch()).backward()
    places = {(birth.module, birth.lines.source.partition(":")[0]) for birth in virtual_gpu.ledger.births}

    assert {"Feed.up", "Feed.down"} <= {module for module, _ in places}
    assert {"Feed"} >= {module.partition(".")[0] for module, _ in places} - {""}
