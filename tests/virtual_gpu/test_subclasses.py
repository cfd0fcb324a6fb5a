"""Tensors of classes that libraries bring stay what they are, on the card too."""

import copy

import pytest
import torch
from torch import nn

pytestmark = pytest.mark.torch


class Picture(torch.Tensor):
    """A tensor with words beside it, as MONAI's MetaTensor: what is made of it carries them along."""

    words: str

    @classmethod
    def __torch_function__(cls, func, types, args=(), kwargs=None):
        """As Tensor's, and the words of the first argument."""
        made = super().__torch_function__(func, types, args, kwargs)
        if isinstance(made, Picture) and isinstance(args[0], Picture):
            vars(made)["words"] = vars(args[0]).get("words")
        return made


class Quantised(nn.Parameter):
    """A weight that takes a quarter of its bytes once it is moved to a card, as those of bitsandbytes."""

    def __new__(cls, data, requires_grad=False):
        """A parameter like any other until then."""
        return torch.Tensor._make_subclass(cls, data, requires_grad)

    def to(self, *args, **kwargs):
        """Quantise it in place."""
        device, *_ = torch._C._nn._parse_to(*args, **kwargs)
        if device.type != "cuda" or self.dtype == torch.int8:
            return super().to(*args, **kwargs)
        self.data = self.data.to(device).to(torch.int8)
        self.was = torch.float32
        return self

    def cuda(self, device=None):
        """As `to`."""
        return self.to(device="cuda")


def test_a_subclass_on_the_card(virtual_gpu):
    """It is an instance of its class with a fake tensor's shape, and so is what is made of it."""
    picture = torch.randn(4, 3, device="cuda", requires_grad=True).as_subclass(Picture)
    picture.words = "a cat"
    double = picture * 2

    assert isinstance(picture, Picture) and isinstance(double, Picture)
    assert "Picture" == type(double).__name__
    assert "a cat" == double.words
    assert "cuda" == double.device.type
    double.sum().backward()


@pytest.mark.parametrize(
    "move", [lambda x: x.cuda(), lambda x: x.to("cuda"), lambda x: x.to(0)], ids=["cuda", "to", "0"]
)
def test_a_subclass_moves_to_the_card_and_back(virtual_gpu, move):
    """512 bytes of the card; on the host again it is real."""
    picture = torch.ones(4, 3).as_subclass(Picture)
    picture.words = "a cat"
    moved = move(picture)

    assert isinstance(moved, Picture) and moved.is_cuda
    assert "a cat" == moved.words
    assert 512 == torch.cuda.memory_allocated()
    back = moved.cpu()
    assert type(back) is Picture
    assert "a cat" == back.words


def test_attributes_of_another(virtual_gpu):
    """MONAI replaces all of a tensor's attributes by those of another one; where the tensor is stays."""
    picture, on_host = torch.ones(4, 3, device="cuda").as_subclass(Picture), torch.ones(2).as_subclass(Picture)
    on_host.words = "a dog"
    picture.__dict__ = dict(vars(on_host))

    assert "a dog" == (picture + 1).words
    assert picture.is_cuda


def test_a_subclass_is_taken_off(virtual_gpu):
    """`as_subclass(torch.Tensor)` is a view without the class."""
    picture = torch.ones(4, 3, device="cuda").as_subclass(Picture)

    assert not isinstance(picture.as_subclass(torch.Tensor), Picture)
    assert 512 == torch.cuda.memory_allocated()


def test_a_subclass_is_copied(virtual_gpu):
    """Parameters of a class of their own are of it after `deepcopy`."""
    layer = nn.Linear(16, 16, device="cuda")
    layer.weight = Quantised(torch.ones(16, 16, device="cuda"), requires_grad=True)
    copied = copy.deepcopy(layer)

    assert isinstance(copied.weight, Quantised)
    assert isinstance(copied.weight, nn.Parameter)
    assert copied.weight.requires_grad and copied.weight.is_cuda


@pytest.mark.parametrize("real", [True, False], ids=["real", "in the making"])
def test_a_weight_is_quantised_as_its_module_moves(virtual_gpu, real):
    """It is the same object afterwards, of int8, and torch's memory is that of int8."""
    layer = nn.Linear(1024, 1024, bias=False)
    layer.weight = weight = Quantised(torch.ones(1024, 1024) if real else layer.weight.data)
    layer.cuda()

    assert layer.weight is weight
    assert isinstance(weight, Quantised)
    assert (torch.int8, torch.float32) == (weight.dtype, weight.was)
    assert 1 << 20 == torch.cuda.memory_allocated()


def test_data_of_a_real_tensor_moves(virtual_gpu):
    """`tensor.data = tensor.data.cuda()`: the same leaf, whose gradient is on the card."""
    leaf = torch.ones(100, requires_grad=True)
    leaf.note = "kept"
    view, same = leaf.detach()[:2], leaf
    leaf.data = leaf.data.cuda()
    (leaf * 2).sum().backward()

    assert same is leaf and "kept" == leaf.note
    assert leaf.is_leaf and leaf.is_cuda and leaf.grad.is_cuda
    assert not view.is_cuda
    assert 2 * 512 == torch.cuda.memory_allocated()


def test_pictures_of_torchvision(virtual_gpu):
    """Transforms of its second version tell images from boxes by their class."""
    tv_tensors = pytest.importorskip("torchvision.tv_tensors")
    from torchvision.transforms import v2

    image = tv_tensors.Image(torch.zeros(3, 32, 32), device="cuda")
    boxes = tv_tensors.BoundingBoxes(torch.tensor([[1.0, 2, 3, 4]]), format="XYXY", canvas_size=(32, 32), device="cuda")
    image, boxes = v2.RandomHorizontalFlip(1.0)(image, boxes)

    assert isinstance(image, tv_tensors.Image)
    assert isinstance(boxes, tv_tensors.BoundingBoxes)
    assert (32, 32) == boxes.canvas_size
