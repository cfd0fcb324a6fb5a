"""What the planner starts from: one command, what its simulation showed, and what was asked for."""

from collections import Counter, defaultdict
from dataclasses import dataclass
from functools import cached_property

from peaksight.gpus import Room
from peaksight.planning.variants import Variant
from peaksight.records import Allocation, Capture, OptimizerFact, Report, ScriptCommand
from peaksight.records.findings import Effect


@dataclass(frozen=True, kw_only=True)
class Situation:
    """The run as it is: `capture` on a card without a limit, `report` with its findings.

    `limit_bytes` is what a plan may reserve, `allowed` the most that it may change. `variants` are other arguments,
    as `--vary` gives them.
    """

    command: ScriptCommand
    room: Room
    capture: Capture
    report: Report
    limit_bytes: int
    variants: tuple[Variant, ...] = ()
    allowed: Effect = Effect.ROUNDING

    @property
    def is_under_jax(self) -> bool:
        """Whether it is a script under JAX, whose memory comes from a pool."""
        return self.capture.pool_bytes is not None

    @property
    def usable_bytes(self) -> int:
        """What the run may take of the card: under JAX no more than its pool."""
        pool_bytes = self.capture.pool_bytes
        return self.room.usable_bytes if pool_bytes is None else min(self.room.usable_bytes, pool_bytes)

    @property
    def excess_bytes(self) -> int:
        """By how much the run as it is reserves too much."""
        return max(0, self.capture.peak_reserved_bytes - self.limit_bytes)

    @cached_property
    def saved(self) -> tuple[Allocation, ...]:
        """What a backward pass needs, of the step that saves most, alive together."""
        by_step: dict[int, list[Allocation]] = defaultdict(list)
        for allocation in self.capture.allocations:
            if allocation.saved_by:
                by_step[allocation.step].append(allocation)
        return tuple(max(by_step.values(), key=lambda held: sum(a.allocated_bytes for a in held), default=()))

    @cached_property
    def saved_by_module(self) -> Counter[str]:
        """Bytes of `saved` by the path of their module."""
        counts: Counter[str] = Counter()
        for allocation in self.saved:
            counts[allocation.module] += allocation.allocated_bytes
        return counts

    @property
    def is_sharded(self) -> bool:
        """Whether parameters come and go in collectives, as under FSDP and ZeRO."""
        capture = self.capture
        return capture.world_size > 1 and any("all_gather" in call.kind for call in capture.collectives)

    @property
    def optimizers(self) -> tuple[OptimizerFact, ...]:
        """What stepped, a row for each kind of parameter."""
        return self.capture.optimizers
