"""A block in the making of its record, and what is known when it is handed out."""

from dataclasses import dataclass

from peaksight.allocator.blocks import Block
from peaksight.allocator.caching import CachingAllocator
from peaksight.records import Allocation, Phase, Role
from peaksight.virtual_gpu.source_lines import Lines


@dataclass(slots=True, eq=False)
class Birth:
    """One block in the making of its record; `role` and `died` become known later."""

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

    def record(self) -> Allocation:
        """The frozen record."""
        return Allocation(
            born=self.born,
            died=self.died,
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
        )


@dataclass(frozen=True, slots=True)
class Circumstances:
    """What is known at the moment of a birth."""

    step: int
    phase: Phase
    grad_enabled: bool
    module: str
    lines: Lines


@dataclass(slots=True)
class Peaks:
    """The run's own peaks, which `torch.cuda.reset_peak_memory_stats` does not touch."""

    tick: int = 0
    allocated_bytes: int = 0
    reserved_bytes: int = 0
    requested_bytes: int = 0
    active_bytes: int = 0

    def note(self, allocator: CachingAllocator, tick: int) -> None:
        """Something was allocated at `tick`."""
        if allocator.allocated_bytes > self.allocated_bytes:
            self.allocated_bytes, self.tick = allocator.allocated_bytes, tick
        self.requested_bytes = max(self.requested_bytes, allocator.requested_bytes)
        self.active_bytes = max(self.active_bytes, allocator.active_bytes)
