"""Products of groups of rows, as the experts of a mixture take them: ATen/native/GroupedMMUtils.h.

torch's own fake kernel accepts 16 bits only. The card takes float32 too, and then multiplies group by group.

Limitations:
    The pointers and tensor maps of the fused kernel in bfloat16 are left out: some KiB.
"""

from collections.abc import Callable
from typing import Any

import torch

ALIGNMENT_BYTES = 16


def grouped_mm(mode: Any, run: Callable[..., Any], args: tuple[Any, ...], kwargs: dict[str, Any]) -> torch.Tensor:
    """`aten::_grouped_mm`: a row of the result for each row, or a matrix for each group; rows begin at 16 bytes."""
    mat_a, mat_b = args[:2]
    offs = kwargs.get("offs", args[2] if len(args) > 2 else None)
    *batch, num_rows, num_columns = _size(mat_a, mat_b, offs)
    dtype = kwargs.get("out_dtype") or mat_a.dtype
    alignment = ALIGNMENT_BYTES // dtype.itemsize
    padded = -(-num_columns // alignment) * alignment
    strides = (num_rows * padded, padded, 1)[-len(batch) - 2 :]
    with mode:
        return mat_a.new_empty_strided((*batch, num_rows, num_columns), strides, dtype=dtype)


def _size(mat_a: torch.Tensor, mat_b: torch.Tensor, offs: torch.Tensor | None) -> tuple[int, ...]:
    """Groups split rows of the first, columns of the second, or the dimension that both share."""
    if mat_a.dim() == 2 and mat_b.dim() == 2 and offs is not None:
        return (offs.shape[0], mat_a.shape[0], mat_b.shape[1])
    batch = (mat_a.shape[0],) if mat_a.dim() == mat_b.dim() else ()
    return (*batch, mat_a.shape[-2], mat_b.shape[-1])


FAKE_KERNELS: dict[str, Callable[..., Any]] = {"aten::_grouped_mm": grouped_mm}
