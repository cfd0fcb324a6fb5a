"""How many distinct values unknown integers can have: what is selected of some has no more than they.

Detection networks ask which classes their boxes have (`torch.unique`) and go through them one by one. The boxes are
picked by unknown scores, but out of a row of all classes.
"""

from typing import Any

import torch

from peaksight.virtual_gpu.tensors.even_shares import CASTS, EXACT, choices
from peaksight.virtual_gpu.tensors.known import known_value
from peaksight.virtual_gpu.tensors.notes import note, noted
from peaksight.virtual_gpu.torch_private import FakeTensor

aten = torch.ops.aten

COUNT = "_peaksight_most_distinct"
SELECTIONS = {aten.index.Tensor, aten.index_select.default, aten.gather.default, aten.masked_select.default, *CASTS}


def most_distinct(tensor: torch.Tensor) -> int:
    """How many distinct values `tensor` has, or an upper bound of it."""
    value = known_value(tensor)
    if value is not None:
        return len(value.unique())
    count = noted(tensor, COUNT)
    bound = tensor.numel() if count is None else count
    return min(bound, tensor.numel(), 2 if tensor.dtype == torch.bool else choices(tensor) or bound)


def remember(func: Any, args: tuple[Any, ...], out: Any) -> None:
    """After `out = func(*args)` on the virtual GPU: what `most_distinct` is to say of it, until it is written to."""
    if not isinstance(out, FakeTensor) or out.dtype not in EXACT or known_value(out) is not None:
        return
    if not (func.is_view or func in SELECTIONS) or not (args and isinstance(args[0], FakeTensor)):
        return
    count = most_distinct(args[0])
    if count < out.numel():
        note(out, COUNT, count, view_of=args[0] if func.is_view else None)
