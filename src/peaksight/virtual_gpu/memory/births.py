"""A block in the making of its record, and what is known when it is handed out."""

from dataclasses import dataclass
from functools import lru_cache
from typing import Any

import torch

from peaksight.allocator.blocks import Block
from peaksight.records import Allocation, Phase, Role
from peaksight.virtual_gpu.source_lines import Lines


@dataclass(slots=True, eq=False)
class Birth:
    """One block in the making of its record; `role`, `died` and `reusable` become known later."""

    born: int
    block: Block
    allocated_bytes: int
    requested_bytes: int
    stream: int
    step: int
    phase: Phase
    grad_enabled: bool
    op: str
    module: str
    lines: Lines
    role: Role = Role.UNMARKED
    died: int | None = None
    reusable: int | None = None
    dispensable: bool = False
    late_free: bool = False
    tensor: str = ""
    saved_by: str = ""
    backward: int = 0
    node: int = 0
    copy_of: int = 0

    def record(self) -> Allocation:
        """The frozen record."""
        return Allocation(
            born=self.born,
            died=self.died,
            reusable=self.reusable,
            requested_bytes=self.requested_bytes,
            allocated_bytes=self.allocated_bytes,
            stream=self.stream,
            step=self.step,
            phase=self.phase,
            role=self.role,
            grad_enabled=self.grad_enabled,
            op=self.op,
            module=self.module,
            source=self.lines.source,
            library=self.lines.library,
            dispensable=self.dispensable,
            late_free=self.late_free,
            tensor=self.tensor,
            saved_by=self.saved_by,
            backward=self.backward,
            node=self.node,
            copy_of=self.copy_of,
        )


def in_words(tensor: Any) -> str:
    """The dtype and shape of `tensor`, as in `float32[8, 512, 768]`."""
    return _in_words(tensor.dtype, tuple(tensor.shape))


@lru_cache(maxsize=65536)
def _in_words(dtype: torch.dtype, shape: tuple[int, ...]) -> str:
    return f"{str(dtype).removeprefix('torch.')}{list(shape)}"


@dataclass(slots=True)
class Circumstances:
    """What is known at the moment of a birth."""

    step: int
    phase: Phase
    grad_enabled: bool
    module: str
    lines: Lines
    node: int = 0
