"""CUDA autocast for virtual tensors.

The kernels of torch ask C++ `is_cuda()`, see meta and cast nothing (see Note [The device trick]). These Python
kernels for the same dispatch key cast by the same lists, and keep the same cache of cast weights: fp32 leaves that
require grad are cast once, until the outermost region is left.
"""

from collections.abc import Callable
from typing import Any

import torch

from peaksight.overlays.patches import Patches
from peaksight.virtual_gpu.kernels.recurrent import half_copies
from peaksight.virtual_gpu.tensors.devices import is_virtual_cuda
from peaksight.virtual_gpu.torch_private import autocast_excluded
from peaksight.virtual_gpu.training import autocast_ops

aten = torch.ops.aten


class WeightCache:
    """Low-precision copies of fp32 weights, one per weight and autocast region."""

    def __init__(self) -> None:
        """Empty."""
        self._casts: dict[int, tuple[torch.Tensor, torch.Tensor]] = {}

    def cast(self, weight: torch.Tensor, dtype: torch.dtype) -> torch.Tensor:
        """`weight` in `dtype`, made at the first request."""
        if id(weight) not in self._casts:
            self._casts[id(weight)] = (weight, aten.to.dtype(weight, dtype))
        return self._casts[id(weight)][1]

    def clear(self) -> None:
        """Forget every copy, as at the exit of the outermost region."""
        self._casts.clear()


class Autocast:
    """Installs the kernels for the length of a run."""

    def __init__(self, patches: Patches, release: tuple[int, int]) -> None:
        """Register a kernel for every operator that torch `release` casts; `patches` takes them out again."""
        self._cache = WeightCache()
        self._clear_real = patches.set(torch, "clear_autocast_cache", self._clear)
        kernels: dict[str, Callable[..., Any]] = {}
        for names, kernel in (
            (autocast_ops.LOWER_PRECISION, self._lower_precision),
            (autocast_ops.FLOAT32, self._float32),
            (autocast_ops.FLOAT32_BY_DTYPE_ARGUMENT, self._float32_by_argument),
            (autocast_ops.WIDEST, self._widest),
            (autocast_ops.BANNED, _banned),
        ):
            kernels |= {name: kernel(op) for name in names if (op := _operator(name, release)) is not None}
        kernels["_cudnn_rnn"] = self._recurrent
        patches.set_kernels("AutocastCUDA", kernels)

    def _clear(self) -> None:
        self._cache.clear()
        self._clear_real()

    def _lower_precision(self, op: Any) -> Callable[..., Any]:
        return self._casting(op, lambda args: torch.get_autocast_dtype("cuda"))

    def _float32(self, op: Any) -> Callable[..., Any]:
        return self._casting(op, lambda args: torch.float32)

    def _widest(self, op: Any) -> Callable[..., Any]:
        return self._casting(op, _widest_dtype)

    def _casting(self, op: Any, dtype_of: Callable[..., Any]) -> Callable[..., Any]:
        def kernel(*args: Any, **kwargs: Any) -> Any:
            with autocast_excluded():
                dtype = dtype_of(args)
                kwargs = {name: self._cast(value, dtype) for name, value in kwargs.items()}
                # GCC evaluates the arguments of torch's own kernel from the last to the first.
                return op(*[self._cast(a, dtype) for a in reversed(args)][::-1], **kwargs)

        return kernel

    def _float32_by_argument(self, op: Any) -> Callable[..., Any]:
        position = [argument.name for argument in op._schema.arguments].index("dtype")

        def kernel(*args: Any, **kwargs: Any) -> Any:
            given = args[position] if len(args) > position else kwargs.get("dtype")
            with autocast_excluded():
                if given is None and _is_eligible(args[0]):
                    return op(*args[:position], **{**kwargs, "dtype": torch.float32})
                return op(*args, **kwargs)

        return kernel

    def _recurrent(self, input: Any, weights: Any, stride: int, buffer: Any, hx: Any, cx: Any, *settings: Any) -> Any:
        """Always in half precision, with all weights cast at once: ATen/cudnn/AutocastRNN.cpp."""
        with autocast_excluded():
            if _is_eligible(weights[0]) and weights[0].dtype != torch.float16:
                buffer, weights = half_copies(weights, stride)
            cx, hx, input = (self._cast(value, torch.float16) for value in (cx, hx, input))
            return aten._cudnn_rnn.default(input, weights, stride, buffer, hx, cx, *settings)

    def _cast(self, value: Any, dtype: torch.dtype) -> Any:
        if isinstance(value, (list, tuple)):
            return type(value)(self._cast(v, dtype) for v in value)
        if not _is_eligible(value) or value.dtype == dtype:
            return value
        if self._is_cacheable(value, dtype):
            return self._cache.cast(value, dtype)
        return aten.to.dtype(value, dtype)

    @staticmethod
    def _is_cacheable(tensor: torch.Tensor, dtype: torch.dtype) -> bool:
        return (
            torch.is_autocast_cache_enabled()
            and dtype == torch.get_autocast_dtype("cuda")
            and tensor.dtype == torch.float32
            and tensor.requires_grad
            and tensor.is_leaf
            and not tensor._is_view()
        )


def _operator(name: str, release: tuple[int, int]) -> Any:
    """The overload called `name` (`pow.Scalar`), None where `release` does not cast it."""
    if release < autocast_ops.SINCE.get(name, release):
        return None
    packet, _, overload = name.partition(".")
    return getattr(getattr(aten, packet, None), overload or "default", None)


def _is_eligible(value: Any) -> bool:
    return is_virtual_cuda(value) and value.is_floating_point() and value.dtype != torch.float64


def _widest_dtype(args: tuple[Any, ...]) -> torch.dtype:
    leaves = [leaf for a in args for leaf in (a if isinstance(a, (list, tuple)) else (a,))]
    dtypes = [leaf.dtype for leaf in leaves if _is_eligible(leaf)]
    return torch.float32 if torch.float32 in dtypes else torch.get_autocast_dtype("cuda")


def _banned(op: Any) -> Callable[..., Any]:
    def kernel(*args: Any, **kwargs: Any) -> Any:
        if not any(map(_is_eligible, args)):
            with autocast_excluded():
                return op(*args, **kwargs)
        raise RuntimeError(
            f"{op._schema.name} is unsafe under autocast: use the form that takes logits "
            "(binary_cross_entropy_with_logits), or leave autocast around it."
        )

    return kernel
