"""cuBLAS workspaces: one a handle and stream, the forward and the backward thread have a handle each."""

import pytest
import torch
from torch import nn

from peaksight.gpus import find_card
from peaksight.records import Phase, Role
from peaksight.units import MIB
from peaksight.virtual_gpu.device_rules import rules_for
from peaksight.virtual_gpu.kernels.cublas import cublas_workspace_bytes
from peaksight.virtual_gpu.kernels.workspaces import UNPRICED

from ..cards import births_on, card_of, requested, slugs

pytestmark = pytest.mark.torch

SMALL = 8_519_680


def x(*shape):
    """A tensor on the card."""
    return torch.empty(shape or (4, 4), device="cuda")


def workspaces(gpu):
    """The workspaces that are held, by phase."""
    return [
        (birth.phase, birth.requested_bytes)
        for birth in gpu.ledger.births
        if birth.role is Role.WORKSPACE and birth.died is None
    ]


@pytest.mark.parametrize(
    ("card", "build", "num_bytes"),
    [
        ("h100-80gb", "2.11+cu130", 32 * MIB),
        ("h100-80gb", "2.14+cu130", 32 * MIB),
        ("a100-80gb", "2.14+cu130", SMALL),
        ("rtx-4090", "2.14+cu130", SMALL),
        ("t4", "2.11+cu130", SMALL),
        ("b200", "2.11+cu130", SMALL),
        ("b200", "2.12+cu130", 32 * MIB),
    ],
)
def test_sizes(card, build, num_bytes):
    """32 MiB on Hopper, on Blackwell from torch 2.12 on, 8,519,680 bytes elsewhere."""
    assert num_bytes == cublas_workspace_bytes(rules_for(build, find_card(card)))


@pytest.mark.parametrize(
    ("build", "lt"), [("2.11+cu130", [MIB]), ("2.12+cu130", []), ("2.13+cu130", []), ("2.14+cu130", [])]
)
def test_training_step(build, lt):
    """A forward takes one, the backward thread another, and they stay; torch 2.11 has a separate one for Lt."""
    with card_of("h100-80gb", build=build) as gpu:
        layer = nn.Linear(4, 4).cuda()
        for _ in range(2):
            layer(x(2, 4).requires_grad_()).sum().backward()

        forward = [(Phase.FORWARD, num_bytes) for num_bytes in (32 * MIB, *lt)]
        assert [*forward, (Phase.BACKWARD, 32 * MIB)] == workspaces(gpu)


@pytest.mark.parametrize(
    "multiply",
    [
        lambda: x() @ x(),
        lambda: torch.mm(x(), x()),
        lambda: torch.bmm(x(2, 4, 4), x(2, 4, 4)),
        lambda: torch.baddbmm(x(2, 4, 4), x(2, 4, 4), x(2, 4, 4)),
        lambda: torch.einsum("ij,jk->ik", x(), x()),
        lambda: x() @ x(4),
        lambda: x(4) @ x(4),
        lambda: torch.addmm(x(), x(), x()),
        lambda: torch.nn.functional.linear(x(), x()),
    ],
)
def test_what_takes_one(virtual_gpu, multiply):
    """Every matrix product, and none of them cublasLt's: that needs a bias vector."""
    multiply()

    assert [32 * MIB] == [num_bytes for _, num_bytes in workspaces(virtual_gpu)]


@pytest.mark.parametrize(
    ("product", "lt"),
    [
        (lambda: torch.addmm(x(4), x(), x()), [MIB]),
        (lambda: torch.addmm(x(4), x(1, 4), x()), []),
        (lambda: torch.addmm(x(8)[::2], x(), x()), []),
    ],
)
def test_cublaslt(virtual_gpu, product, lt):
    """cublasLt adds a contiguous bias to a product whose sizes are all above one."""
    product()

    assert [32 * MIB, *lt] == [num_bytes for _, num_bytes in workspaces(virtual_gpu)]


@pytest.mark.parametrize("run", [lambda: x() + x(), lambda: x().sum(), lambda: torch.nn.functional.gelu(x())])
def test_what_takes_none(virtual_gpu, run):
    """Other kernels do not use cuBLAS."""
    run()

    assert [] == workspaces(virtual_gpu)


def test_products_of_the_host(virtual_gpu):
    """Products of fake parameters on the host take nothing of the card."""
    nn.Linear(4, 4)(torch.ones(2, 4))

    assert [] == virtual_gpu.ledger.births


def test_each_stream_has_its_own(virtual_gpu):
    """A side stream that multiplies takes another workspace, from its own pool."""
    side = torch.cuda.Stream()
    x() @ x()
    with births_on(virtual_gpu) as births, torch.cuda.stream(side):
        x() @ x()

    assert [(32 * MIB, side.stream_id)] == [
        (birth.requested_bytes, birth.stream) for birth in births if birth.role is Role.WORKSPACE
    ]


def test_recomputation_is_in_the_backward_thread(virtual_gpu):
    """Checkpointing takes no third workspace."""
    layer = nn.Linear(4, 4, bias=False).cuda()
    torch.utils.checkpoint.checkpoint(layer, x(2, 4).requires_grad_(), use_reentrant=False).sum().backward()

    assert [32 * MIB] * 2 == [num_bytes for _, num_bytes in workspaces(virtual_gpu)]


UNPRICED_CALLS = {
    "convolution-workspace": lambda: torch.nn.functional.conv2d(x(1, 2, 4, 4), x(3, 2, 3, 3)),
    "linalg-workspace": lambda: torch.linalg.eig(x()),
    "index-workspace": lambda: torch.isin(x(8), x(30)),
}


@pytest.mark.parametrize("slug", UNPRICED_CALLS)
def test_unpriced(virtual_gpu, slug):
    """A kernel whose workspace has no rule is listed by name."""
    UNPRICED_CALLS[slug]()

    assert slug in slugs(virtual_gpu)


def test_unpriced_names_exist():
    """Every operator without a price is an operator."""
    assert all(isinstance(func, torch._ops.OpOverload) for func in UNPRICED)
    assert [] == requested([])


@pytest.mark.parametrize("product", [torch.mm, torch.bmm], ids=["mm", "bmm"])
def test_a_product_into_a_tensor_that_is_there(product):
    """Takes a workspace as any other."""
    with card_of("h100-80gb") as gpu:
        left = x(4, 4) if product is torch.mm else x(2, 4, 4)
        product(left, left, out=torch.empty_like(left))

        assert [size for _, size in workspaces(gpu)] == [32 * MIB]


def test_solvers_take_the_workspace_of_cublas(virtual_gpu):
    """Determinants are cuSOLVER's and take none; their gradients solve a system, in the other thread's handle."""
    matrix = torch.eye(48, device="cuda", dtype=torch.float64, requires_grad=True)
    with births_on(virtual_gpu) as forward:
        logarithm = torch.linalg.slogdet(matrix).logabsdet
    with births_on(virtual_gpu) as backward:
        logarithm.backward()

    assert 32 * MIB not in requested(forward)
    assert requested(backward).count(32 * MIB) == 1
