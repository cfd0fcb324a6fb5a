"""An operator that nobody asked a card about is listed, not priced at zero."""

import pytest
import torch

from peaksight.errors import UnsupportedError
from peaksight.units import MIB
from peaksight.virtual_gpu.kernels.known_operators import MEASURED, family, is_known
from tests.virtual_gpu.cards import slugs

pytestmark = pytest.mark.torch
aten = torch.ops.aten


@pytest.fixture
def smooth():
    """A custom operator of a library."""
    library = torch.library.Library("peaksight_test", "FRAGMENT")
    library.define("smooth(Tensor x) -> Tensor")
    library.impl("smooth", torch.empty_like, "CUDA")
    library.impl("smooth", torch.empty_like, "Meta")
    yield torch.ops.peaksight_test.smooth
    library._destroy()


def test_custom_operator(virtual_gpu, smooth):
    """Its result is counted, its workspace is said to be unknown, by name."""
    smooth(torch.ones(4, 4, device="cuda"))

    unknown = [each for each in virtual_gpu.approximations.records() if each.slug == "unknown-operator"]
    assert "peaksight_test::smooth" in unknown[0].what
    assert unknown[0].bytes is None


def test_common_operators_are_known(virtual_gpu):
    """A step of a model with a usual optimizer has none."""
    model = torch.nn.Sequential(torch.nn.Linear(8, 8), torch.nn.GELU(), torch.nn.LayerNorm(8)).cuda()
    optimizer = torch.optim.AdamW(model.parameters())
    targets = torch.ones(4, 8, device="cuda")
    torch.nn.functional.cross_entropy(model(torch.ones(4, 8, device="cuda")), targets).backward()
    torch.nn.utils.clip_grad_norm_(model.parameters(), 1.0)
    optimizer.step()

    assert "unknown-operator" not in slugs(virtual_gpu)


def test_drawn_and_assembled(virtual_gpu):
    """Random numbers, weights that are normed and sparse matrices are made by kernels that take nothing else."""
    layer = torch.nn.utils.parametrizations.weight_norm(torch.nn.Linear(8, 8)).cuda()
    layer(torch.rand_like(torch.ones(4, 8, device="cuda"))).sum().backward()
    torch.poisson(torch.empty(8, device="cuda").random_(5))
    places = torch.arange(4, device="cuda").expand(2, 4)
    torch.sparse_coo_tensor(places, torch.ones(4, device="cuda"), (4, 4))

    assert "unknown-operator" not in slugs(virtual_gpu)


def test_families():
    """In-place forms and overloads share their kernels."""
    assert family(aten.add_.Tensor) == family(aten.add.out) == family(aten.add.Tensor) == "aten::add"


@pytest.mark.parametrize("func", [aten.view.default, aten.sin_.default, aten.addmm.default])
def test_known(func):
    """Views, pointwise operators and measured ones."""
    assert is_known(func)


def test_the_list_is_of_operators():
    """Hundreds were measured."""
    assert len(MEASURED) > 300
    assert all("::" in name for name in MEASURED)


def test_its_workspace_has_a_bound(virtual_gpu, smooth):
    """More than anything of its kind took that was measured: of all calls, the largest counts."""
    smooth(torch.ones(2 * MIB, device="cuda"))
    smooth(torch.ones(MIB, device="cuda"))
    [unknown] = [each for each in virtual_gpu.approximations.records() if each.slug == "unknown-operator"]

    assert (unknown.bytes, unknown.at_most_bytes) == (None, 32 * MIB + 16 * (8 + 8) * MIB)


def test_operator_without_a_fake_kernel(virtual_gpu):
    """It is refused by name."""
    library = torch.library.Library("peaksight_test", "FRAGMENT")
    library.define("rough(Tensor x) -> Tensor")
    library.impl("rough", torch.empty_like, "CUDA")
    try:
        with pytest.raises(UnsupportedError, match="peaksight_test::rough: it has no fake kernel"):
            torch.ops.peaksight_test.rough(torch.ones(4, device="cuda"))
    finally:
        library._destroy()


@pytest.mark.filterwarnings("ignore:Sparse")
def test_a_layout_without_a_model(virtual_gpu):
    """It is named as such, whatever the operator."""
    with pytest.raises(UnsupportedError, match=r"a tensor of layout torch\.sparse_csr") as refused:
        torch.eye(4).to_sparse_csr().cuda()

    assert "tensor-layout" == refused.value.slug


def test_ragged_tensors(virtual_gpu):
    """So are nested tensors of layout jagged."""
    with pytest.raises(UnsupportedError, match=r"a tensor of layout torch\.jagged"):
        torch.nested.nested_tensor([torch.ones(3, 4), torch.ones(5, 4)], device="cuda", layout=torch.jagged)
