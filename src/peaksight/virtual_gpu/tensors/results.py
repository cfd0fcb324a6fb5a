"""What an operator leaves on the card: which of its results are there, and what holds their memory."""

from collections.abc import Callable, Sequence
from functools import cache
from typing import Any

import torch
from torch.utils._pytree import tree_leaves

from peaksight.errors import UnsupportedError
from peaksight.virtual_gpu.torch_private import FakeTensor, fake_device_of, layout_of

aten = torch.ops.aten
# The outputs that an operator makes on the card, in its order: random seeds may be on the host, or come first.
RESULTS_ON_CARD = {
    aten._ctc_loss.default: (1, 0),
    aten._efficientzerotensor.default: (),
    aten.native_dropout.default: (1, 0),
    aten.nll_loss2d_forward.default: (1, 0),
    aten._scaled_dot_product_cudnn_attention.default: (6, 7, 0, 1),
    aten._scaled_dot_product_efficient_attention.default: (0, 1),
    aten._efficient_attention_forward.default: (0, 1),
    aten._thnn_fused_lstm_cell.default: (2, 0, 1),
    aten._thnn_fused_gru_cell.default: (1, 0),
}
_RESIZES = {aten.resize_.default, aten.resize_as_.default, aten.set_.source_Tensor}


def device_tensors(func: Any, out: Any, made_up: Callable[[str], None]) -> list[tuple[int, Any]]:
    """Every tensor with a storage on a card that `func` returned, each with the index of its card.

    `made_up` hears of sparse ones.
    """
    if func in RESULTS_ON_CARD:
        out = [out[position] for position in RESULTS_ON_CARD[func]]
    found: list[tuple[int, Any]] = []
    for leaf in (out,) if isinstance(out, FakeTensor) else tree_leaves(out):
        if isinstance(leaf, FakeTensor) and (device := fake_device_of(leaf)).type == "cuda":
            found += [(device.index, part) for part in _strided_parts(leaf, made_up)]
    return found


def _strided_parts(tensor: torch.Tensor, made_up: Callable[[str], None]) -> Sequence[torch.Tensor]:
    """What holds the memory of `tensor`: itself, or the parts of a sparse one."""
    if layout_of(tensor) is torch.strided:
        return (tensor,)
    if tensor.layout == torch.sparse_coo:
        made_up("sparse-gradient")
        return (tensor._indices(), tensor._values())
    raise _of_unknown_layout(tensor.layout)


def unknown_layout(args: Any, kwargs: dict[str, Any]) -> UnsupportedError | None:
    """What to say of the arguments of an operator that failed, None where they are of layouts that are known."""
    tensors = [leaf for leaf in tree_leaves((args, kwargs)) if isinstance(leaf, torch.Tensor)]
    layouts = [*(tensor.layout for tensor in tensors), kwargs.get("layout") or torch.strided]
    unknown = [layout for layout in layouts if layout not in (torch.strided, torch.sparse_coo)]
    return _of_unknown_layout(unknown[0]) if unknown else None


def refuse_ragged(tensor: FakeTensor, **_: Any) -> int:
    """`FakeTensor.get_nested_int`: `tensor` has the offsets of a nested tensor of layout jagged."""
    raise _of_unknown_layout(torch.jagged)


def _of_unknown_layout(layout: torch.layout) -> UnsupportedError:
    return UnsupportedError(
        f"Can't simulate a tensor of layout {layout}: only strided and sparse_coo are known. "
        "Keep it on the CPU, or use another layout.",
        slug="tensor-layout",
    )


def card_of(out: Any) -> int | None:
    """The index of the card that an output is on, None for the host: parameters in the making are fake too."""
    for tensor in out if isinstance(out, (list, tuple)) else (out,):
        if isinstance(tensor, FakeTensor) and (device := fake_device_of(tensor)).type == "cuda":
            index: int = device.index
            return index
    return None


@cache
def takes_no_tensor(func: Any) -> bool:
    """Whether `func` makes its results from nothing."""
    return not any("Tensor" in str(argument.type) for argument in func._schema.arguments)


@cache
def may_resize(func: Any) -> bool:
    """Whether `func` may change the size of the storage that it returns: an output given with `out=`, too."""
    schema = getattr(func, "_schema", None)
    return func in _RESIZES or (schema is not None and any(argument.is_out for argument in schema.arguments))


@cache
def may_allocate(func: Any) -> bool:
    """Whether some output of `func` is not a view of, or the same as, an input."""
    schema = getattr(func, "_schema", None)
    return schema is None or any(returned.alias_info is None for returned in schema.returns)
