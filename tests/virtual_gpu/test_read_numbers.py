"""Lists of numbers on the card become tensors, as `torch.tensor(losses)` does on a real one."""

import pytest
import torch

from .cards import slugs

pytestmark = pytest.mark.torch


def card(*numbers, dtype=torch.int64):
    """Numbers on the card that are known."""
    return list(torch.tensor(numbers, dtype=dtype).cuda())


def losses(dtype=torch.float32):
    """Numbers on the card that are not."""
    return [torch.randn(4, device="cuda", dtype=dtype).mean() for _ in range(2)]


@pytest.mark.parametrize(
    ("make", "dtype", "shape"),
    [
        (lambda: torch.tensor(losses()), torch.float32, (2,)),
        (lambda: torch.tensor(losses(torch.bfloat16)), torch.bfloat16, (2,)),
        (lambda: torch.tensor([*losses(), 0.5, 1]), torch.float32, (4,)),
        (lambda: torch.tensor([*card(1, 2), 3]), torch.int64, (3,)),
        (lambda: torch.tensor([*card(1), True, 0.5]), torch.float32, (3,)),
        (lambda: torch.tensor([card(1, 2), [3, 4]]), torch.int64, (2, 2)),
        (lambda: torch.tensor((losses()), dtype=torch.float64), torch.float64, (2,)),
        (lambda: torch.tensor([torch.randn(1, device="cuda")]), torch.float32, (1,)),
        (lambda: torch.as_tensor(losses()), torch.float32, (2,)),
        (lambda: torch.asarray(losses()), torch.float32, (2,)),
        (lambda: torch.randn(2, dtype=torch.float64, device="cpu").new_tensor(losses()), torch.float64, (2,)),
    ],
)
def test_a_tensor_on_the_host(virtual_gpu, make, dtype, shape):
    """Its dtype is that which its numbers have together."""
    made = make()

    assert (made.dtype, tuple(made.shape), made.device.type) == (dtype, shape, "cpu")


@pytest.mark.parametrize(
    "make",
    [
        lambda: torch.tensor(losses(), device="cuda"),
        lambda: torch.as_tensor(losses(), device="cuda"),
        lambda: torch.asarray(losses(), device="cuda"),
        lambda: losses()[0].new_tensor(losses()),
        lambda: torch.randn(2).new_tensor(losses(), device="cuda"),
    ],
)
def test_a_tensor_on_the_card(virtual_gpu, make):
    """The host reads the numbers, which are not known, and sends them back."""
    made = make()

    assert (made.device, made.tolist()) == (torch.device("cuda", 0), [1.0, 1.0])
    assert "values" in slugs(virtual_gpu)


def test_what_is_known_stays_known(virtual_gpu):
    """Lengths decide shapes."""
    assert torch.tensor([each + 1 for each in card(3, 5)], device="cuda").tolist() == [4, 6]
    assert "values" not in slugs(virtual_gpu)


def test_more_than_numbers_are_refused(virtual_gpu):
    """Near miss: PyTorch's own words for a list of vectors."""
    with pytest.raises(ValueError, match="only one element tensors can be converted to Python scalars"):
        torch.tensor([torch.randn(3, device="cuda")])
