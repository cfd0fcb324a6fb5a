"""Parameters and modules: fake parameters keep their identity, and every call of a module is followed."""

from collections.abc import Callable, Iterator
from typing import Any, Protocol
from weakref import WeakSet

import torch
from torch import nn
from torch.utils._pytree import tree_leaves
from torch.utils.weak import WeakIdKeyDictionary

from peaksight.overlays.patches import Patches
from peaksight.records import Role
from peaksight.virtual_gpu.memory.devices import Devices
from peaksight.virtual_gpu.tensors.mode import VirtualGpuMode
from peaksight.virtual_gpu.tensors.subclasses import OnCard
from peaksight.virtual_gpu.torch_private import FakeTensor, swap
from peaksight.virtual_gpu.training import lazy_modules
from peaksight.virtual_gpu.training.training_loop import ModuleTree, TrainingLoop


class Parameters:
    """Every parameter of the run, by weak reference; says which storages hold parameters, gradients and buffers."""

    def __init__(self, devices: Devices, tree: ModuleTree) -> None:
        """Marks storages in the ledgers of `devices`, with the paths of `tree`."""
        self._ledgers = devices.ledgers
        self._tree = tree
        self._all = WeakIdKeyDictionary()  # a WeakSet would compare tensors with ==
        self._roots: WeakSet[nn.Module] = WeakSet()

    def add(self, parameter: Any) -> None:
        """A parameter was made."""
        self._all[parameter] = ""
        self._mark(parameter, Role.PARAMETER)

    def add_module(self, module: nn.Module) -> None:
        """A module was moved or called: its buffers are known from now on."""
        if module not in self._roots:
            self._roots.add(module)
            self._tree.path_of(module)
            for child in reversed(list(module.modules())):  # of tied parameters the first module is named, as in torch
                for parameter in child.parameters(recurse=False):
                    self._all[parameter] = self._tree.path_of(child)
            self.mark_module(module)

    def add_optimized(self, optimizer: torch.optim.Optimizer) -> None:
        """What an optimizer trains is a parameter, although it may be a plain tensor with `requires_grad`."""
        for group in optimizer.param_groups:
            for parameter in group["params"]:
                self._all.setdefault(parameter, "")

    def mark(self) -> None:
        """Say of every storage that holds a parameter, a gradient or a buffer what it is."""
        for parameter, module in self._all.items():
            self._mark_parameter(parameter, module)
        for root in self._roots:
            self._mark_buffers(root)

    def mark_module(self, module: nn.Module) -> None:
        """The same of `module` alone: what is moved piece by piece is not walked whole at each piece."""
        for parameter in module.parameters():
            self._mark_parameter(parameter, self._all.get(parameter, ""))
        self._mark_buffers(module)

    def _mark_parameter(self, parameter: Any, module: str) -> None:
        self._mark(parameter, Role.PARAMETER, module)
        # Of what an update in place has made a non-leaf, torch has no gradient and warns.
        if (parameter.is_leaf or parameter.retains_grad) and parameter.grad is not None:
            self._mark(parameter.grad, Role.GRADIENT, module)

    def _mark_buffers(self, root: nn.Module) -> None:
        for module in reversed(list(root.modules())):  # of those that share a buffer the first comes last
            for buffer in module.buffers(recurse=False):
                self._mark(buffer, Role.BUFFER, self._tree.path_of(module))

    def mark_state(self, optimizer: torch.optim.Optimizer) -> None:
        """Say of every tensor in the optimizer's state that it is optimizer state."""
        for parameter, state in optimizer.state.items():
            module = self._all.get(parameter, "") if isinstance(parameter, torch.Tensor) else ""
            for tensor in _tensors(state):
                self._mark(tensor, Role.OPTIMIZER_STATE, module)

    def _mark(self, tensor: Any, role: Role, module: str = "") -> None:
        for part in _parts(tensor):
            if part.layout == torch.strided and part.fake_device.type == "cuda":
                self._ledgers[part.fake_device.index].storages.mark(part.untyped_storage(), role, module)


def _parts(tensor: Any) -> Iterator[FakeTensor]:
    """What holds the memory of `tensor`: itself, or what a subclass such as DTensor wraps."""
    if isinstance(tensor, FakeTensor):
        yield tensor
    elif hasattr(tensor, "__tensor_flatten__"):
        for name in tensor.__tensor_flatten__()[0]:
            yield from _parts(getattr(tensor, name))


def _tensors(state: Any) -> Iterator[torch.Tensor]:
    if isinstance(state, torch.Tensor):
        yield state
    elif isinstance(state, dict):
        for value in state.values():
            yield from _tensors(value)
    elif isinstance(state, (list, tuple)):
        for value in state:
            yield from _tensors(value)


class Caller(Protocol):
    """Who is told of calls of modules."""

    def module_called(self, module: nn.Module, inputs: Any, *, is_root: bool) -> None:
        """`module` is called with `inputs`, from outside of any other if `is_root`."""

    def root_returned(self, module: nn.Module) -> None:
        """`module`, which no other called, has returned."""


def install(
    patches: Patches, mode: VirtualGpuMode, loop: TrainingLoop, parameters: Parameters, witness: Caller
) -> None:
    """Follow modules and keep parameters fake until `patches` is left; `witness` is told of every call."""
    patches.set(torch.utils, "swap_tensors", _take_over)
    _make_parameters_fake(patches, mode, parameters)
    lazy_modules.install(patches, parameters.add)
    _follow_calls(patches, loop, parameters, witness)
    _follow_moves(patches, mode, parameters)


def _take_over(parameter: Any, moved: Any) -> Any:
    """`Module._apply` swaps fake parameters; swap_tensors refuses because of weak references, so the data moves.

    A tensor cannot take data from meta to another device, nor back, and a DTensor has other data beside: there the
    two are swapped after all.
    """
    if not isinstance(parameter, FakeTensor) or parameter.is_meta or moved.is_meta:
        return swap(parameter, moved)
    with torch.no_grad():
        parameter.data = moved.data
    parameter.fake_device = moved.fake_device
    return parameter


def _make_parameters_fake(patches: Patches, mode: VirtualGpuMode, parameters: Parameters) -> None:
    make = nn.Parameter.__new__

    def make_fake(cls: type, data: Any = None, requires_grad: bool = True) -> Any:
        if type(data) in (torch.Tensor, nn.Parameter) and data.device.type == "cpu" and data.layout == torch.strided:
            data = mode.fake(data)
        if isinstance(data, OnCard) and isinstance(data, nn.Parameter):
            return data  # a quantised weight that moves, which `Module._apply` makes a parameter to swap it
        made: Any = make(cls, data, requires_grad)
        if next(_parts(made), None) is not None:
            parameters.add(made)
        return made

    patches.set(nn.Parameter, "__new__", staticmethod(make_fake))
    _make_by_type(patches)


def _make_by_type(patches: Patches) -> None:
    """`type(parameter)(data, **vars(parameter))`, by which accelerate puts weights into a module."""
    make = FakeTensor.__new__

    def make_like(cls: type, *args: Any, **kwargs: Any) -> Any:
        if args and isinstance(args[0], torch.Tensor):
            return nn.Parameter(args[0], kwargs.get("requires_grad", True))
        return make(cls, *args, **kwargs)

    patches.set(FakeTensor, "__new__", staticmethod(make_like))


def _follow_calls(patches: Patches, loop: TrainingLoop, parameters: Parameters, witness: Caller) -> None:
    call = nn.Module.__call__

    def followed(module: nn.Module, *args: Any, **kwargs: Any) -> Any:
        is_root = not loop.is_running
        if is_root:
            parameters.add_module(module)
        witness.module_called(module, (args, kwargs), is_root=is_root)
        with loop.running(module, is_passed=is_root and _is_passed_by_gradient(module, (args, kwargs))):
            result = call(module, *args, **kwargs)
        if is_root:
            witness.root_returned(module)
        return result

    patches.set(nn.Module, "__call__", followed)


def _is_passed_by_gradient(module: nn.Module, inputs: Any) -> bool:
    """Whether `module` is frozen and a gradient flows through it to its `inputs`: training, although in `eval()`."""
    return (
        torch.is_grad_enabled()
        and not any(parameter.requires_grad for parameter in module.parameters())
        and any(isinstance(each, torch.Tensor) and each.requires_grad for each in tree_leaves(inputs))
    )


def _follow_moves(patches: Patches, mode: VirtualGpuMode, parameters: Parameters) -> None:
    apply: Callable[..., Any] = nn.Module._apply

    def followed(module: nn.Module, fn: Callable[..., Any], recurse: bool = True) -> Any:
        mode.moving_modules += 1
        try:
            return apply(module, fn, recurse)
        finally:
            mode.moving_modules -= 1
            if not mode.moving_modules:
                parameters.add_module(module)
                parameters.mark_module(module)

    patches.set(nn.Module, "_apply", followed)
