"""Functions under `torch.library.custom_op` take what their Python takes."""

import pytest
import torch

from peaksight.errors import UnsupportedError
from peaksight.units import MIB

from ..cards import peak_of, slugs

pytestmark = pytest.mark.torch


@pytest.fixture
def define():
    """Defines such a function for the length of a test."""
    made = []

    def custom_op(name, function, **options):
        made.append(torch.library.custom_op(f"peaksight_test::{name}", function, mutates_args=(), **options))
        return made[-1]

    yield custom_op
    for each in made:
        each._lib._destroy()


def twice_in_double(x: torch.Tensor) -> torch.Tensor:
    """Makes a copy in double precision on its way."""
    return (x.double() * 2).float()


@pytest.mark.parametrize("options", [{}, {"device_types": "cuda"}], ids=["any device", "cuda"])
def test_its_temporaries_count(virtual_gpu, define, options):
    """4 MiB of float32: two of double precision at a time, without a fake kernel."""
    function = define("twice", twice_in_double, **options)
    x = torch.ones(MIB, device="cuda")

    assert (8 + 8) * MIB == peak_of(virtual_gpu, lambda: function(x))
    assert torch.float32 == function(x).dtype
    assert "unknown-operator" not in slugs(virtual_gpu)


def test_its_gradient(virtual_gpu, define):
    """`register_autograd` is PyTorch's own: nothing inside of the function is recorded."""
    function = define("thrice", twice_in_double)
    function.register_autograd(lambda ctx, grad: grad * 2)
    x = torch.ones(MIB, device="cuda", requires_grad=True)
    out = function(x)

    assert "GeneratedBackwardFor" in type(out.grad_fn).__name__
    out.sum().backward()
    assert (MIB,) == tuple(x.grad.shape)


def by_address(x: torch.Tensor) -> torch.Tensor:
    """What calls into C: there is no memory at the address."""
    raise OSError(f"no memory at {x.data_ptr()}")


def test_one_that_needs_the_card(virtual_gpu, define):
    """Its fake kernel says what it returns; without one it is refused by name."""
    function = define("foreign", by_address)
    x = torch.ones(MIB, device="cuda")
    with pytest.raises(UnsupportedError, match=r"peaksight_test::foreign.*: it has no fake kernel"):
        function(x)
    function.register_fake(torch.empty_like)

    assert 4 * MIB == peak_of(virtual_gpu, lambda: function(x))


def too_large(x: torch.Tensor) -> torch.Tensor:
    """A hundred GiB."""
    return x.new_empty(100 << 28)


def test_out_of_memory_inside(virtual_gpu, define):
    """It is the script's to catch, as on the card."""
    function = define("large", too_large)
    with pytest.raises(torch.OutOfMemoryError):
        function(torch.ones(1, device="cuda"))
