"""How a script asks for the card, and what tensors answer about it."""

import pytest
import torch
from torch import nn

from .cards import births_on, requested

pytestmark = pytest.mark.torch

ON_THE_CARD = [
    lambda: torch.ones(4, device="cuda"),
    lambda: torch.ones(4, device="cuda:0"),
    lambda: torch.ones(4, device=0),
    lambda: torch.ones(4, device=torch.device("cuda")),
    lambda: torch.ones(4, device=torch.device(0)),
    lambda: torch.ones(4, device=torch.device("cuda", 0)),
    lambda: torch.ones(4).cuda(),
    lambda: torch.ones(4).cuda(0),
    lambda: torch.ones(4).cuda(non_blocking=True),
    lambda: torch.ones(4).cuda(torch.device("cuda:0"), non_blocking=True),
    lambda: torch.ones(4).to(0),
    lambda: torch.ones(4).to("cuda"),
    lambda: torch.ones(4).to(device="cuda", dtype=torch.float32, non_blocking=True),
    lambda: torch.ones(4).to("cuda", torch.float32),
    lambda: torch.ones(4).to(torch.empty(1, device="cuda")),
    lambda: torch.ones(4).pin_memory().to("cuda", non_blocking=True),
    lambda: torch.tensor([1.0, 2.0, 3.0, 4.0], device="cuda"),
    lambda: torch.as_tensor([1.0, 2.0, 3.0, 4.0], device="cuda"),
    lambda: torch.asarray([1.0, 2.0, 3.0, 4.0], device="cuda"),
    lambda: torch.arange(4.0, device="cuda"),
    lambda: torch.linspace(0, 1, 4, device="cuda"),
    lambda: torch.full((4,), 2.0, device="cuda"),
    lambda: torch.randn(4, device="cuda"),
    lambda: torch.randn(4, device="cuda", generator=torch.Generator(device="cuda").manual_seed(0)),
    lambda: torch.ones(4).new_zeros(4, device="cuda"),
    lambda: torch.zeros_like(torch.ones(4), device="cuda"),
    lambda: torch.ones(4, device="cuda").new_zeros(4),
    lambda: torch.ones_like(torch.ones(4, device="cuda")),
    lambda: torch.empty(4, device="cuda").copy_(torch.ones(4)),
    lambda: nn.Linear(1, 4, device="cuda").bias.detach(),
    lambda: torch.cuda.FloatTensor(4),
    lambda: torch.cuda.FloatTensor([1.0, 2.0, 3.0, 4.0]),
    lambda: torch.ones(4).type(torch.cuda.FloatTensor),
    lambda: torch.ones(4).type("torch.cuda.FloatTensor"),
]


@pytest.mark.parametrize("make", ON_THE_CARD)
def test_ways_to_the_card(virtual_gpu, make):
    """However a script asks for it, four floats on the card are 16 bytes in a block of 512."""
    tensor = make()

    assert torch.device("cuda", 0) == tensor.device
    assert torch.float32 == tensor.dtype
    assert (4,) == tuple(tensor.shape)
    assert 16 in requested(virtual_gpu.ledger.births)


@pytest.mark.parametrize("make", ON_THE_CARD)
def test_ways_to_the_card_in_inference_mode(virtual_gpu, make):
    """So it is where autograd does not take operators apart."""
    with torch.inference_mode():
        tensor = make()

    assert torch.device("cuda", 0) == tensor.device
    assert (torch.float32, (4,)) == (tensor.dtype, tuple(tensor.shape))


def test_with_a_device(virtual_gpu):
    """Inside `with torch.device("cuda")` everything is made on the card, and parameters are."""
    with torch.device("cuda"), births_on(virtual_gpu) as births:
        made = [torch.zeros(4), torch.tensor([1.0]), torch.arange(2), nn.Linear(8, 8, bias=False).weight]

    assert {"cuda"} == {tensor.device.type for tensor in made}
    assert [16, 4, 16, 256] == requested(births)
    assert "cpu" == torch.zeros(4).device.type


def test_default_device(virtual_gpu):
    """`torch.set_default_device("cuda")` holds until it is taken back."""
    torch.set_default_device("cuda")
    on_card = torch.zeros(4), torch.tensor(1.0), torch.empty(4, device="cpu")
    torch.set_default_device(None)

    assert ["cuda", "cuda", "cpu"] == [tensor.device.type for tensor in on_card]
    assert "cpu" == torch.zeros(4).device.type


def test_moving_what_is_there(virtual_gpu):
    """`.cuda()` and `.to` of a tensor on the card return it and take nothing."""
    tensor = torch.ones(4, device="cuda")
    with births_on(virtual_gpu) as births:
        same = [tensor.cuda(), tensor.to("cuda"), tensor.to(tensor.device), tensor.to(torch.float32)]

    assert all(moved is tensor for moved in same)
    assert [] == births


def test_gradient_reaches_the_host(virtual_gpu):
    """`.cuda()` is part of the graph."""
    weight = torch.ones(4, requires_grad=True)
    weight.cuda().sum().backward()

    assert "cpu" == weight.grad.device.type


def test_requires_grad_of_a_factory(virtual_gpu):
    """`requires_grad` of a factory on the card is kept."""
    assert torch.tensor([1.0], device="cuda", requires_grad=True).requires_grad
    assert torch.ones(2, device="cuda", requires_grad=True).is_leaf


def test_answers_of_a_tensor(virtual_gpu):
    """A tensor on the card says so in every way, for itself and its views."""
    for tensor in (torch.ones(4, 4, device="cuda"), torch.ones(4, 4, device="cuda").t(), nn.Linear(2, 2).cuda().weight):
        assert tensor.is_cuda
        assert not tensor.is_cpu
        assert not tensor.is_meta
        assert 0 == tensor.get_device()
        assert "cuda" == tensor.device.type
        assert 0 == tensor.device.index
        assert "torch.cuda.FloatTensor" == tensor.type()
        assert isinstance(tensor, torch.cuda.FloatTensor)
        assert not isinstance(tensor, torch.cuda.HalfTensor)
        assert not isinstance(tensor, torch.FloatTensor)
        assert torch.is_tensor(tensor)


def test_answers_of_a_host_tensor(virtual_gpu):
    """Tensors on the host say that they are there, real ones and parameters."""
    for tensor in (torch.ones(4), nn.Linear(2, 2).weight):
        assert not tensor.is_cuda
        assert tensor.is_cpu
        assert -1 == tensor.get_device()
        assert "torch.FloatTensor" == tensor.type()
        assert not isinstance(tensor, torch.cuda.FloatTensor)
        assert isinstance(tensor, torch.FloatTensor)


def test_printing(virtual_gpu):
    """A tensor on the card can be printed."""
    assert "cuda:0" in repr(torch.ones(4, device="cuda") * 2)
    assert "cuda:0" in str(torch.randn(2, 2, device="cuda"))


def test_channels_last(virtual_gpu):
    """A memory format asked for at the move is kept by convolutions, and takes no more bytes."""
    model = nn.Conv2d(4, 8, 3, padding=1).to("cuda", memory_format=torch.channels_last)
    image = torch.ones(2, 4, 8, 8).to("cuda", memory_format=torch.channels_last)
    with births_on(virtual_gpu) as births:
        out = model(image)

    assert model.weight.is_contiguous(memory_format=torch.channels_last)
    assert out.is_contiguous(memory_format=torch.channels_last)
    assert [2 * 8 * 8 * 8 * 4] == requested(births)


def test_views_take_nothing(virtual_gpu):
    """Views, slices, splits and detached tensors share the storage."""
    tensor = torch.ones(16, 16, device="cuda")
    with births_on(virtual_gpu) as births:
        views = [tensor.t(), tensor[1:3], *tensor.split(4), tensor.detach(), tensor.view(-1), tensor.expand(2, 16, 16)]

    assert [] == births
    assert {tensor.untyped_storage()._cdata} == {view.untyped_storage()._cdata for view in views}


def test_storage_lives_as_long_as_a_view(virtual_gpu):
    """A block is freed with the last tensor that shares its storage."""
    tensor = torch.ones(256, device="cuda")
    view = tensor[:1]
    del tensor

    assert 1024 == virtual_gpu.ledger.allocator.allocated_bytes

    del view

    assert 0 == virtual_gpu.ledger.allocator.allocated_bytes


def test_resizing_a_storage(virtual_gpu):
    """`resize_` takes a larger block; a storage of size zero gives its block back."""
    tensor = torch.ones(4, device="cuda").resize_(1024)

    assert 4096 == virtual_gpu.ledger.allocator.requested_bytes

    tensor.untyped_storage().resize_(0)

    assert 0 == virtual_gpu.ledger.allocator.requested_bytes


def test_assigning_data(virtual_gpu):
    """`parameter.data = tensor` frees what the parameter had."""
    parameter = nn.Parameter(torch.ones(256, device="cuda"))
    parameter.data = torch.ones(512, device="cuda")

    assert 2048 == virtual_gpu.ledger.allocator.allocated_bytes


def test_assigning_data_moves_a_parameter(virtual_gpu):
    """To the card and back, as hand-written loops do it, and data that is real."""
    layer = nn.Linear(512, 512, bias=False)
    for device, num_bytes in (("cuda", 2**20), ("cpu", 0), ("cuda", 2**20)):
        layer.weight.data = layer.weight.data.to(device)

        assert (layer.weight.device.type, layer.weight.is_cuda) == (device, bool(num_bytes))
        assert num_bytes == torch.cuda.memory_allocated()
    assert layer(torch.ones(2, 512, device="cuda")).is_cuda
    layer.weight.data = torch.ones(3, 512)

    assert (tuple(layer.weight.shape), layer.weight.device.type) == ((3, 512), "cpu")


def test_a_module_moves_to_meta_and_back(virtual_gpu):
    """Its parameters lose their memory, and get new one."""
    layer = nn.Linear(512, 512, bias=False).cuda().to("meta")

    assert (layer.weight.is_meta, torch.cuda.memory_allocated()) == (True, 0)
    assert layer.to_empty(device="cuda").weight.is_cuda
    assert 2**20 == torch.cuda.memory_allocated()


def test_an_operator_that_fails(virtual_gpu, caplog):
    """The script gets the exception that the card would raise, and torch does not log its own on the way."""
    a = torch.randn(3, 4, device="cuda")

    with pytest.raises(RuntimeError):
        a @ a

    assert not caplog.records


@pytest.mark.parametrize("ask", [lambda: torch.ones(2, device="cuda:1"), lambda: torch.ones(2).to("cuda:1")])
def test_there_is_one_card(virtual_gpu, ask):
    """In the words of CUDA's runtime, as torch 2.11 has them; naming another one is no mistake."""
    assert torch.device("cuda:1").index == 1
    with pytest.raises(torch.AcceleratorError) as raised:
        ask()

    assert str(raised.value).startswith(
        "CUDA error: invalid device ordinal\nGPU device may be out of range, do you have enough GPUs?\nCUDA kernel"
    )
