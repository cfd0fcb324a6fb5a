"""The private names of torch that tell which kernels run an operator on the card."""

import functools
from collections.abc import Callable
from operator import attrgetter
from typing import Any

import torch
import torch._library.custom_ops as custom_ops
import torch._subclasses.fake_tensor as fake_tensor
from torch._C import DispatchKey
from torch._higher_order_ops.flex_attention import FlexAttentionHOP
from torch._prims_common import suggest_memory_format

__all__ = [
    "FlexAttentionHOP",
    "below_autograd",
    "composite",
    "cuda_kernels",
    "is_composite",
    "lacks_fake_kernel",
    "python_kernel",
    "sdp_priority",
    "set_sdp_priority",
    "suggest_memory_format",
]

sdp_priority = torch._C._get_sdp_priority_order
set_sdp_priority = torch._C._set_sdp_priority_order


def below_autograd() -> torch._C._AutoDispatchBelowAutograd:
    """A context in which operators skip autograd."""
    return torch._C._AutoDispatchBelowAutograd()


# Composite on other devices, one kernel on CUDA: in no other operator of torch 2.11 to 2.14 do the two meet.
KERNELS_OF_CUDA = frozenset({"aten::silu_backward", "aten::mish_backward"})


def is_composite(op: torch._ops.OpOverload) -> bool:
    """Whether a C++ function takes `op` apart on the card."""
    has_function = torch._C._dispatch_has_kernel_for_dispatch_key(op.name(), DispatchKey.CompositeImplicitAutograd)
    return has_function and op.name() not in KERNELS_OF_CUDA


def composite(op: torch._ops.OpOverload) -> Callable[..., Any]:
    """That function, which `op.decompose` may hide behind a decomposition in Python."""
    return functools.partial(op._op_dk, DispatchKey.CompositeImplicitAutograd)


# What is registered for CUDA runs on the card, else what is for any device.
_ON_CARD = DispatchKey.CUDA, DispatchKey.CompositeExplicitAutograd


def cuda_kernels(namespace: str) -> dict[torch._ops.OpOverload, Callable[..., Any]]:
    """What runs on the card for each operator of `namespace`."""
    names = {name for key in _ON_CARD for name in torch._C._dispatch_get_registrations_for_dispatch_key(key.name)}
    of_library = [name.removeprefix(f"{namespace}::") for name in names if name.startswith(f"{namespace}::")]
    ops = [attrgetter(name if "." in name else f"{name}.default")(getattr(torch.ops, namespace)) for name in of_library]
    return {op: kernel for op in ops if (kernel := _kernel(op)) is not None}


def python_kernel(op: torch._ops.OpOverload) -> Callable[..., Any] | None:
    """What a function under `torch.library.custom_op` runs on the card; None for other operators."""
    return _kernel(op) if op.name() in custom_ops.OPDEFS else None


def _kernel(op: torch._ops.OpOverload) -> Callable[..., Any] | None:
    registered = (key for key in _ON_CARD if torch._C._dispatch_has_kernel_for_dispatch_key(op.name(), key))
    return next((functools.partial(op._op_dk, key) for key in registered), None)


# What FakeTensorMode raises for an operator without a fake kernel, and what its attempts to run the real one end in.
NO_FAKE_KERNEL = (
    fake_tensor.UnsupportedOperatorException,
    fake_tensor.DynamicOutputShapeException,
    fake_tensor.DataDependentOutputException,
    NotImplementedError,
)
NO_DEVICE = ("Found no NVIDIA driver", "Torch not compiled with CUDA enabled")
# What a function under torch.library.custom_op says.
NOT_REGISTERED = "There was no fake impl registered for"


def lacks_fake_kernel(error: Exception) -> bool:
    """Whether FakeTensorMode failed because an operator has no fake kernel."""
    return isinstance(error, NO_FAKE_KERNEL) or any(text in str(error) for text in (*NO_DEVICE, NOT_REGISTERED))
