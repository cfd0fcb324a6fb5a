"""Where a full card is seen: in the allocator, before it raises, so that also what the script catches is known."""

from collections.abc import Callable
from dataclasses import dataclass
from types import ModuleType

from peaksight.overlays.late_imports import change_modules
from peaksight.overlays.patches import Patches
from peaksight.units import format_bytes


@dataclass(frozen=True, slots=True, kw_only=True)
class Moment:
    """A request that a card could not serve, at the time that it could not; the script's stack is still there."""

    device: int
    requested_bytes: int
    total_bytes: int
    free_bytes: int

    @property
    def text(self) -> str:
        """A sentence for people."""
        return (
            f"card {self.device} is full: {format_bytes(self.requested_bytes)} were asked for, "
            f"{format_bytes(self.free_bytes)} of {format_bytes(self.total_bytes)} are free"
        )


def follow_out_of_memory(patches: Patches, on_moment: Callable[[Moment], None]) -> None:
    """Call `on_moment` each time that the allocator gives up, once the script has imported torch.

    torch offers no way to take an observer back: `on_moment` has to know when it is no longer wanted.
    """

    def observe(device: int, requested_bytes: int, total_bytes: int, free_bytes: int) -> None:
        on_moment(
            Moment(
                device=device, requested_bytes=requested_bytes, total_bytes=total_bytes, free_bytes=free_bytes
            )
        )  # fmt: skip

    def attach(module: ModuleType) -> None:
        from peaksight.live.torch_private import attach_out_of_memory_observer

        attach_out_of_memory_observer(observe)

    change_modules(patches, {"torch": attach})
