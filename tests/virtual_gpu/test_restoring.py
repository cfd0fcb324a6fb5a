"""After the virtual GPU, torch is as before."""

from types import ModuleType

import pytest
import torch
import torch._subclasses as subclasses
import torch.optim.optimizer as optimizer_module
from torch import nn
from torch.overrides import _len_torch_function_stack
from torch.utils._python_dispatch import _len_torch_dispatch_stack

from .cards import h100

pytestmark = pytest.mark.torch

OWNERS = (
    torch, torch._C, torch.accelerator, torch.autograd.graph, torch.cuda, torch.cuda.memory, torch.cuda.random,
    torch.autograd.profiler.record_function, torch.cuda.memory.CUDAPluggableAllocator, torch.UntypedStorage,
    torch.serialization, torch.hub, torch.utils, torch.version, nn.Module, nn.Parameter, subclasses.FakeTensor,
    subclasses.fake_tensor, optimizer_module, torch.utils.data.DataLoader,
)  # fmt: skip


def train():
    """One step with autocast, dropout and an optimizer."""
    model = nn.Sequential(nn.Linear(8, 8), nn.Dropout()).cuda()
    with torch.autocast("cuda"):
        loss = model(torch.ones(2, 8, device="cuda")).sum()
    loss.backward()
    torch.optim.AdamW(model.parameters()).step()


def test_every_name_is_put_back():
    """No name that the virtual GPU replaces is left replaced, also when the script fails."""
    before = [dict(vars(owner)) for owner in OWNERS]
    with pytest.raises(KeyError), h100():
        train()
        raise KeyError

    for owner, names in zip(OWNERS, before, strict=True):
        changed = {name: now for name, now in vars(owner).items() if names.get(name) is not now}
        assert {} == {name: now for name, now in changed.items() if not isinstance(now, ModuleType)}  # an import
        assert set() == names.keys() - vars(owner).keys()
    assert 0 == _len_torch_function_stack() == _len_torch_dispatch_stack()


def test_kernels_and_hooks_are_taken_out():
    """Dropout and autocast on the CPU, parameters and optimizers are real again."""
    supported = list(optimizer_module._foreach_supported_types)
    hooks = len(optimizer_module._global_optimizer_pre_hooks), len(optimizer_module._global_optimizer_post_hooks)
    with h100():
        train()
    layer = nn.Linear(2, 2)

    assert type(layer.weight) is nn.Parameter
    assert isinstance(layer.weight.sum().item(), float)
    assert supported == optimizer_module._foreach_supported_types
    assert hooks == (
        len(optimizer_module._global_optimizer_pre_hooks),
        len(optimizer_module._global_optimizer_post_hooks),
    )


def test_no_card_is_left(tmp_path):
    """torch.cuda has no card again and torch.save writes a file that holds values."""
    with h100():
        assert torch.cuda.is_available()
    torch.save(torch.ones(3), tmp_path / "ones.pt")

    assert not torch.cuda.is_available()
    assert [1.0, 1.0, 1.0] == torch.load(tmp_path / "ones.pt").tolist()


def test_second_run_is_the_first_again():
    """Two virtual GPUs in a row count the same blocks."""
    sizes = []
    for _ in range(2):
        with h100() as gpu:
            train()
        sizes.append([(birth.op, birth.requested_bytes) for birth in gpu.ledger.births])

    assert sizes[0] == sizes[1]


def test_default_device_of_the_script_is_forgotten():
    """A default device that the script never took back does not outlive the card."""
    with h100():
        torch.set_default_device("cuda")

    assert "cpu" == torch.zeros(1).device.type
