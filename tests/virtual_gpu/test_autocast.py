"""Autocast: which operators cast, when weights are cast, and mixed-precision loops."""

import re
from pathlib import Path

import pytest
import torch
import torch.nn.functional as F
from torch import nn

from peaksight.records import Phase
from peaksight.virtual_gpu.training import autocast_ops

from .cards import RELEASE, births_on, requested

pytestmark = pytest.mark.torch

HEADER = Path(torch.__file__).parent / "include/ATen/autocast_mode.h"
LISTS = {
    "LOWER_PRECISION_FP": autocast_ops.LOWER_PRECISION,
    "FP32": autocast_ops.FLOAT32,
    "FP32_SET_OPT_DTYPE": autocast_ops.FLOAT32_BY_DTYPE_ARGUMENT,
    "PROMOTE": autocast_ops.WIDEST,
}


def operators_of(macro):
    """The operators that `AT_FORALL_<macro>` of the installed header lists, as `name` or `name.overload`."""
    text = HEADER.read_text().replace("\\\n", " ")
    body = re.search(rf"#define AT_FORALL_{macro}\(_\)([^\n]*)", text)[1]
    operators = {".".join(re.split(r",\s*", entry)) for entry in re.findall(r"_\(([^)]*)\)", body)}
    return {operator for operator in operators if "dimname" not in operator.lower()}


@pytest.mark.skipif(not HEADER.exists(), reason="this torch comes without headers")
@pytest.mark.parametrize("macro", LISTS)
def test_lists(macro):
    """The lists are those of the installed release, but for the overloads of named tensors."""
    known = {name for name in LISTS[macro] if RELEASE >= autocast_ops.SINCE.get(name, RELEASE)}

    assert known == operators_of(macro)
    assert len(LISTS[macro]) == len(set(LISTS[macro]))


def x(*shape, dtype=torch.float32):
    """A tensor on the card."""
    return torch.randn(shape or (4, 4), device="cuda").to(dtype)


HALF, SINGLE, DOUBLE = torch.float16, torch.float32, torch.float64
CASTS = [
    (lambda: x() @ x(), HALF),
    (lambda: torch.mm(x(), x()), HALF),
    (lambda: torch.bmm(x(2, 4, 4), x(2, 4, 4)), HALF),
    (lambda: torch.einsum("ij,jk->ik", x(), x()), HALF),
    (lambda: F.linear(x(), x()), HALF),
    (lambda: F.linear(x(), x(), x(4)), HALF),
    (lambda: F.conv2d(x(1, 2, 4, 4), x(3, 2, 3, 3)), HALF),
    (lambda: F.conv_transpose2d(x(1, 2, 4, 4), x(2, 3, 3, 3)), HALF),
    (lambda: F.scaled_dot_product_attention(*(x(1, 2, 4, 8) for _ in range(3))), HALF),
    (lambda: F.prelu(x(), x(1)), HALF),
    (lambda: x(dtype=HALF) @ x(dtype=torch.bfloat16), HALF),
    (lambda: nn.MultiheadAttention(8, 2, device="cuda")(*(x(4, 2, 8) for _ in range(3)))[0], HALF),
    (lambda: nn.GRUCell(4, 4, device="cuda")(x()), HALF),
    (lambda: F.softmax(x(dtype=HALF), -1), SINGLE),
    (lambda: F.log_softmax(x(dtype=HALF), -1), SINGLE),
    (lambda: F.softmax(x(dtype=HALF), -1, dtype=HALF), HALF),
    (lambda: F.cross_entropy(x(dtype=HALF), torch.zeros(4, dtype=torch.int64, device="cuda")), SINGLE),
    (lambda: F.mse_loss(x(dtype=HALF), x(dtype=HALF)), SINGLE),
    (lambda: F.binary_cross_entropy_with_logits(x(dtype=HALF), x(dtype=HALF)), SINGLE),
    (lambda: F.layer_norm(x(dtype=HALF), (4,)), SINGLE),
    (lambda: F.group_norm(x(2, 4, 3, dtype=HALF), 2), SINGLE),
    (lambda: x(dtype=HALF).sum(), SINGLE),
    (lambda: x(dtype=HALF).cumsum(0), SINGLE),
    (lambda: x(dtype=HALF).pow(2), SINGLE),
    (lambda: x(dtype=HALF).exp(), SINGLE),
    (lambda: x(dtype=HALF).norm(), SINGLE),
    (lambda: torch.logsumexp(x(dtype=HALF), 0), SINGLE),
    (lambda: F.interpolate(x(1, 2, 4, 4, dtype=HALF), scale_factor=2, mode="bilinear"), SINGLE),
    (lambda: torch.cdist(x(), x(), p=1), SINGLE),
    (lambda: torch.addcmul(x(dtype=HALF), x(), x(dtype=HALF)), SINGLE),
    (lambda: torch.addcmul(x(dtype=HALF), x(dtype=HALF), x(dtype=HALF)), HALF),
    (lambda: x(dtype=HALF) + x(), SINGLE),
    (lambda: torch.cat([x(dtype=HALF), x()]), SINGLE),
    (lambda: F.relu(x(dtype=HALF)), HALF),
    (lambda: F.gelu(x(dtype=HALF)), HALF),
    (lambda: F.dropout(x(dtype=HALF)), HALF),
    (lambda: x(dtype=HALF).mean(), HALF),
    (lambda: x(dtype=DOUBLE) @ x(dtype=DOUBLE), DOUBLE),
    (lambda: F.embedding(torch.zeros(2, dtype=torch.int64, device="cuda"), x()), SINGLE),
    (lambda: F.batch_norm(x(4, 4, dtype=HALF), x(4), x(4), training=True), HALF),
]


def test_result_dtypes(virtual_gpu):
    """Each operator returns what it returns under autocast on a card."""
    with torch.autocast("cuda", dtype=HALF):
        assert [dtype for _, dtype in CASTS] == [call().dtype for call, _ in CASTS]


def test_without_autocast(virtual_gpu):
    """Outside of a region, and in one of the CPU, nothing is cast."""
    with torch.autocast("cpu", dtype=torch.bfloat16):
        assert SINGLE == (x() @ x()).dtype
    assert SINGLE == (x() @ x()).dtype


def test_tensors_of_the_host(virtual_gpu):
    """CUDA's autocast leaves the host alone."""
    with torch.autocast("cuda"):
        assert SINGLE == (torch.ones(2, 2) @ torch.ones(2, 2)).dtype


def test_default_dtype(virtual_gpu):
    """CUDA's autocast is float16 unless told otherwise, also in its old spelling."""
    with torch.autocast("cuda"):
        assert HALF == (x() @ x()).dtype
        assert torch.is_autocast_enabled("cuda")
    with torch.autocast(device_type="cuda", dtype=torch.bfloat16):
        assert torch.bfloat16 == (x() @ x()).dtype
    with pytest.warns(FutureWarning), torch.cuda.amp.autocast():
        assert HALF == (x() @ x()).dtype


def test_binary_cross_entropy_is_banned(virtual_gpu):
    """It overflows in half precision, and is refused as torch refuses it."""
    with torch.autocast("cuda"), pytest.raises(RuntimeError, match="unsafe"):
        F.binary_cross_entropy(x().sigmoid(), x().sigmoid())


def weight_casts(gpu, run):
    """The sizes of the casts to half precision while `run()`."""
    with births_on(gpu) as births:
        run()
    return [birth.requested_bytes for birth in births if birth.op == "aten::_to_copy"]


def test_weights_are_cast_once_a_region(virtual_gpu):
    """Two calls cast bias (8 bytes of halves) and weight (32) once, and each its input (16): last argument first."""
    layer, batch = nn.Linear(4, 4).cuda(), x(2, 4)

    def region():
        with torch.autocast("cuda"):
            layer(batch)
            layer(batch)

    assert [8, 32, 16, 16] == weight_casts(virtual_gpu, region)
    assert [8, 32, 16, 16] == weight_casts(virtual_gpu, region)


def test_cached_casts_live_to_the_end_of_the_region(virtual_gpu):
    """Half-precision copies (512 bytes each) stay until the outermost region is left, without a graph too."""
    layer, batch = nn.Linear(4, 4).cuda(), x(2, 4)
    layer(batch)
    before = torch.cuda.memory_allocated()
    with torch.autocast("cuda"):
        with torch.autocast("cuda"), torch.no_grad():
            layer(batch)

        assert before + 2 * 512 == torch.cuda.memory_allocated()

    assert before == torch.cuda.memory_allocated()


def test_frozen_weights_are_not_cached(virtual_gpu):
    """Only leaves that require grad are: a frozen layer casts its weight and bias at each call."""
    layer, batch = nn.Linear(4, 4).cuda().requires_grad_(False), x(2, 4)

    def region():
        with torch.autocast("cuda"):
            layer(batch)
            layer(batch)

    assert 2 * (32 + 8 + 16) == sum(weight_casts(virtual_gpu, region))


def test_cache_can_be_off(virtual_gpu):
    """`cache_enabled=False` casts at each call."""
    layer, batch = nn.Linear(4, 4, bias=False).cuda(), x(2, 4)

    def region():
        with torch.autocast("cuda", cache_enabled=False):
            layer(batch)
            layer(batch)

    assert 2 * (32 + 16) == sum(weight_casts(virtual_gpu, region))


def test_disabled_region_inside(virtual_gpu):
    """Inside a disabled region operators see what they are given."""
    with torch.autocast("cuda"):
        with torch.autocast("cuda", enabled=False):
            inner = x() @ x()
        outer = x() @ x()

    assert [SINGLE, HALF] == [inner.dtype, outer.dtype]


def test_gradients_are_single(virtual_gpu):
    """A weight in single precision has its gradient in single precision, a cast input's chain is cast back."""
    layer = nn.Linear(4, 4).cuda()
    batch = x(2, 4).requires_grad_()
    with torch.autocast("cuda", dtype=torch.bfloat16):
        out = layer(batch)
    out.sum().backward()

    assert torch.bfloat16 == out.dtype
    assert [SINGLE] * 3 == [t.grad.dtype for t in (layer.weight, layer.bias, batch)]


class Double(torch.autograd.Function):
    """Notes whether autocast was on in its backward."""

    seen: list = []  # noqa: RUF012

    @staticmethod
    @torch.amp.custom_fwd(device_type="cuda")
    def forward(ctx, value):
        return value @ value

    @staticmethod
    @torch.amp.custom_bwd(device_type="cuda")
    def backward(ctx, grad):
        Double.seen.append(torch.is_autocast_enabled("cuda"))
        return grad * 2


def test_custom_function(virtual_gpu):
    """`custom_fwd` runs under autocast, and `custom_bwd` as its forward did."""
    Double.seen.clear()
    with torch.autocast("cuda"):
        out = Double.apply(x().requires_grad_())
    out.sum().backward()

    assert HALF == out.dtype
    assert [True] == Double.seen


@pytest.mark.parametrize("make_scaler", [torch.amp.GradScaler, lambda: torch.amp.GradScaler("cuda")])
def test_grad_scaler(virtual_gpu, make_scaler):
    """With GradScaler the optimizer steps at once: its state is there after the first step.

    The scaler's scale, growth tracker, inverse scale and found_inf are 4 bytes each.
    """
    model = nn.Linear(64, 64).cuda()
    optimizer, scaler = torch.optim.Adam(model.parameters()), make_scaler()
    for _ in range(2):
        with torch.autocast("cuda", dtype=HALF):
            loss = model(x(2, 64)).pow(2).mean()
        scaler.scale(loss).backward()
        scaler.unscale_(optimizer)
        nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        scaler.step(optimizer)
        scaler.update()
        optimizer.zero_grad()

    assert {"exp_avg", "exp_avg_sq", "step"} == set(optimizer.state[model.weight])
    assert 65536.0 == scaler.get_scale()
    assert 3 == virtual_gpu.loop.step


def test_scaler_skips_nothing(virtual_gpu):
    """The optimizer's step runs in its own phase, inside `scaler.step`."""
    model = nn.Linear(64, 64).cuda()
    optimizer, scaler = torch.optim.SGD(model.parameters(), momentum=0.9), torch.amp.GradScaler()
    with births_on(virtual_gpu) as births:
        scaler.scale(model(x(2, 64)).sum()).backward()
        scaler.step(optimizer)
        scaler.update()

    assert [64 * 4, 64 * 64 * 4] == sorted(requested(b for b in births if b.phase is Phase.OPTIMIZER))


def test_inference_mode(virtual_gpu):
    """Autocast works in inference mode."""
    layer = nn.Linear(4, 4).cuda()
    with torch.inference_mode(), torch.autocast("cuda"):
        assert HALF == layer(x(2, 4)).dtype


def test_checkpointing_recomputes_in_half(virtual_gpu):
    """Recomputation casts as the forward did."""
    layer = nn.Linear(4, 4).cuda()
    with torch.autocast("cuda"):
        out = torch.utils.checkpoint.checkpoint(layer, x(2, 4).requires_grad_(), use_reentrant=False)
    out.sum().backward()

    assert HALF == out.dtype
    assert SINGLE == layer.weight.grad.dtype
