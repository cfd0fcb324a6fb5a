"""What one operator has its kernels do: floating-point operations, counted by torch's own formulas, and bytes moved."""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from functools import cache
from math import ceil, prod
from typing import Any

import torch
from torch.utils.flop_counter import flop_registry

# Of these nothing is launched, although they are no views.
NO_KERNEL = frozenset(
    {
        "empty", "empty_like", "empty_strided", "empty_permuted", "new_empty", "new_empty_strided", "detach", "detach_",
        "alias", "_unsafe_view", "_reshape_alias", "lift_fresh", "set_", "resize_", "resize_as_", "device",
        "_efficientzerotensor", "is_same_size",
    }
)  # fmt: skip
# What their first argument holds is not read: they write all of it, or only ask for its shape.
NOT_READ = frozenset(
    {
        "copy_", "zero_", "fill_", "normal_", "uniform_", "bernoulli_", "random_", "exponential_", "zeros_like",
        "ones_like", "full_like", "rand_like", "randn_like", "new_zeros", "new_ones", "new_full", "_foreach_zero_",
        "_foreach_copy_",
    }
)  # fmt: skip
# ATen/native/cudnn/BatchNorm.cpp: the library gives each channel to one block.
BY_CHANNEL = frozenset({"cudnn_batch_norm", "cudnn_batch_norm_backward"})
# They read of their first argument only as much as they return, or write to it only what the others hold.
GATHERING = frozenset({"embedding", "index", "index_select", "gather", "take", "masked_select"})
SCATTERING = frozenset({"index_put_", "_index_put_impl_", "index_add_", "scatter_add_", "scatter_", "index_copy_"})

# ATen/native/cuda/MultiTensorApply.cuh: the tensors of a launch by the number of lists, its blocks, what each takes.
_TENSORS_A_LAUNCH = {1: 110, 2: 64, 3: 48, 4: 36}
_TENSORS_OF_MANY_LISTS = 30
_BLOCKS_A_LAUNCH = 320
_ELEMENTS_A_BLOCK = 65536


@dataclass(frozen=True, slots=True)
class Work:
    """`flops` as FlopCounterMode counts them, of which a causal mask may skip half; `kernels` is how many run.

    `num_tensors` and `num_new_tensors` count what goes in and what is made, `num_blocks` the blocks that a kernel is
    cut into where it is no more than one for a channel, else 0.
    """

    flops: int
    bytes: int
    kernels: int
    num_tensors: int = 0
    num_new_tensors: int = 0
    num_blocks: int = 0
    skips_half: bool = False


@cache
def launches(func: Any) -> bool:
    """Whether `func` has the card do anything: a view or memory that is not written needs no kernel."""
    return name_of(func) not in NO_KERNEL and not getattr(func, "is_view", False)


def work_of(func: Any, args: tuple[Any, ...], kwargs: dict[str, Any], out: Any) -> Work:
    """What `func(*args, **kwargs)` has done, which returned `out`."""
    name = name_of(func)
    results = list(tensors_in((out,)))
    inputs = [*tensors_in(args), *tensors_in(kwargs.values())]
    if not any(tensor.numel() for tensor in (*inputs, *results)):
        return Work(0, 0, 1)
    num_bytes = _bytes_read(name, args, inputs, results) + sum(map(touched_bytes, results or written(func, args)))
    return Work(
        flops_of(func, args, kwargs, out),
        num_bytes,
        num_launches(args, results) if "_foreach_" in name or name.startswith("_fused_") else 1,
        num_tensors=len(inputs),
        num_new_tensors=0 if written(func, args) else len(results),
        num_blocks=inputs[0].shape[1] if name in BY_CHANNEL else 0,
        skips_half=_is_causal(func, args, kwargs),
    )


@cache
def name_of(func: Any) -> str:
    """The name of an operator without its namespace and overload: `mm`."""
    packet = getattr(func, "overloadpacket", func)
    return str(getattr(packet, "__name__", packet))


def tensors_in(values: Iterable[Any]) -> Iterator[torch.Tensor]:
    """Every strided tensor in `values`, also those in lists and tuples."""
    for value in values:
        if isinstance(value, torch.Tensor):
            if value.layout == torch.strided:
                yield value
        elif isinstance(value, (list, tuple)):
            yield from tensors_in(value)


def touched_bytes(tensor: torch.Tensor) -> int:
    """The bytes of memory behind `tensor`: what is expanded is there once; none where it is not strided."""
    if tensor.layout != torch.strided:
        return 0
    return prod(size for size, step in zip(tensor.shape, tensor.stride(), strict=True) if step) * tensor.itemsize


def written(func: Any, args: tuple[Any, ...]) -> list[torch.Tensor]:
    """The tensors among `args` that `func`, which returns nothing, writes to."""
    return list(tensors_in(args[position] for position in _written_positions(func) if position < len(args)))


def flops_of(func: Any, args: tuple[Any, ...], kwargs: dict[str, Any], out: Any) -> int:
    """By torch's formula; 0 where it has none, or one that does not take these arguments."""
    formula = flop_registry.get(getattr(func, "overloadpacket", func))
    try:
        return 0 if formula is None else int(formula(*args, **kwargs, out_val=out))
    except (AssertionError, TypeError, ValueError):
        return 0


def num_launches(args: tuple[Any, ...], results: list[torch.Tensor]) -> int:
    """The kernels of an operator on lists of tensors, as `multi_tensor_apply` cuts them."""
    lists = [value for value in args if isinstance(value, (list, tuple)) and list(tensors_in(value[:1]))]
    if not lists:
        return 1
    tensors = list(tensors_in(lists[0]))
    blocks = sum(ceil(tensor.numel() / _ELEMENTS_A_BLOCK) for tensor in tensors)
    depth = len(lists) + bool(results and results[0] is not tensors[0])
    return max(
        ceil(len(tensors) / _TENSORS_A_LAUNCH.get(depth, _TENSORS_OF_MANY_LISTS)), ceil(blocks / _BLOCKS_A_LAUNCH)
    )


def _bytes_read(name: str, args: tuple[Any, ...], inputs: list[torch.Tensor], results: list[torch.Tensor]) -> int:
    if name in NOT_READ:
        first, others = 0, list(tensors_in(args[1:]))
    elif name in GATHERING or name in SCATTERING:
        others = inputs[1:]
        moved = results if name in GATHERING else others
        first = min(touched_bytes(inputs[0]), sum(map(touched_bytes, moved)))
    else:
        first, others = 0, inputs
    return first + sum(map(touched_bytes, others))


@cache
def _written_positions(func: Any) -> list[int]:
    arguments = enumerate(func._schema.arguments) if hasattr(func, "_schema") else ()
    return [at for at, argument in arguments if argument.alias_info is not None and argument.alias_info.is_write]


@cache
def _position_of(func: Any, name: str) -> int | None:
    arguments = enumerate(func._schema.arguments) if hasattr(func, "_schema") else ()
    return next((at for at, argument in arguments if argument.name == name), None)


def _is_causal(func: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> bool:
    return bool(argument_of(func, args, kwargs, "is_causal", False))


def argument_of(func: Any, args: tuple[Any, ...], kwargs: dict[str, Any], name: str, default: Any) -> Any:
    """The argument called `name`, `default` where `func` has none, or was called without."""
    at = _position_of(func, name)
    return args[at] if at is not None and at < len(args) else kwargs.get(name, default)
