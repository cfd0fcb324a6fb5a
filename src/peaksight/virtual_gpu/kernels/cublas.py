"""The workspaces of cuBLAS and cublasLt: one a handle and stream, which stay.

Sources: ATen/cuda/CublasHandlePool.cpp, ATen/native/cuda/Blas.cpp, and the allocator traces of an H100.
"""

from dataclasses import dataclass, field
from typing import Any

import torch

from peaksight.records import Role
from peaksight.units import MIB
from peaksight.virtual_gpu.device_rules import DeviceRules
from peaksight.virtual_gpu.memory.ledger import Ledger

aten = torch.ops.aten

GEMMS = {
    aten.mm.default,
    aten.mm.out,
    aten.addmm.default,
    aten.addmm.out,
    aten.bmm.default,
    aten.bmm.out,
    aten.baddbmm.default,
    aten.baddbmm.out,
    aten.addmv.default,
    aten.mv.default,
    aten.dot.default,
    aten.vdot.default,
    aten._addmm_activation.default,
}
CUBLAS_WORKSPACE_BYTES = 32 * MIB
SMALL_CUBLAS_WORKSPACE_BYTES = 8519680  # :4096:2:16:8
SEPARATE_LT_WORKSPACE_BYTES = MIB


def cublas_workspace_bytes(rules: DeviceRules) -> int:
    """The default size per handle and stream: 32 MiB on Hopper, and on Blackwell from torch 2.12 on."""
    major = rules.capability[0]
    if major == 9 or (major in (10, 11, 12) and rules.torch >= (2, 12)):
        return CUBLAS_WORKSPACE_BYTES
    return SMALL_CUBLAS_WORKSPACE_BYTES


def uses_cublaslt(func: Any, args: tuple[Any, ...]) -> bool:
    """Whether `addmm` takes the cublasLt epilogue: a bias vector and a matrix product with all sizes above one."""
    if func is aten._addmm_activation.default:
        return True
    if func is not aten.addmm.default:
        return False
    bias, left, right = args[:3]
    return bias.dim() == 1 and bias.is_contiguous() and min(*left.shape, *right.shape) > 1


@dataclass(slots=True)
class CublasWorkspaces:
    """One workspace per cuBLAS handle and stream; the forward and the backward thread have a handle each."""

    rules: DeviceRules
    ledger: Ledger
    _taken: set[tuple[str, bool, int]] = field(default_factory=set)

    def before_returning(self, func: Any, args: tuple[Any, ...], in_backward: bool) -> None:
        """`func` ran on the card: take the workspaces that its handle lacks; they stay to the end."""
        if func not in GEMMS:
            return
        self.take(in_backward)
        if self.rules.torch < (2, 12) and uses_cublaslt(func, args):
            self._take("cublasLt", SEPARATE_LT_WORKSPACE_BYTES, in_backward)

    def take(self, in_backward: bool) -> None:
        """A kernel asked for the handle: take its workspace, unless it has one."""
        self._take("cublas", cublas_workspace_bytes(self.rules), in_backward)

    def _take(self, library: str, num_bytes: int, in_backward: bool) -> None:
        key = (library, in_backward, self.ledger.stream)
        if key not in self._taken:
            self.ledger.allocate(num_bytes, f"{library} workspace", Role.WORKSPACE)
            self._taken.add(key)
