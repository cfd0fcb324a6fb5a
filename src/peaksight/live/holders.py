"""Which lines of the script hold memory of the card: the allocator's own history, recorded for a few steps."""

from collections import Counter
from pathlib import PurePath

from peaksight.live.allocator_lines import source_of


class AllocatorHolders:
    """Has the allocator note the Python stack of what is alive."""

    def __init__(self) -> None:
        """Nothing is recorded yet."""
        self._is_ours = False

    def begin(self) -> bool:
        """Start to record, unless the script or the capsule does already; False where torch cannot."""
        from peaksight.live.torch_private import history_is_recorded, record_stacks_of_live  # with the script's torch

        self._is_ours = not history_is_recorded()
        return record_stacks_of_live() if self._is_ours else True

    def bytes_by_line(self, device: int) -> dict[str, int]:
        """What was allocated since `begin` and is alive, by line; what no Python code allocated has an empty one."""
        from peaksight.live.torch_private import memory_snapshot

        held: Counter[str] = Counter()
        for segment in (memory_snapshot() or {"segments": ()})["segments"]:
            if segment["device"] == device:
                for block in segment["blocks"]:
                    if block["state"] == "active_allocated" and block.get("frames") is not None:
                        held[PurePath(source_of(block["frames"])).name] += block["size"]
        return dict(held)

    def end(self) -> None:
        """Stop, if it was us who started."""
        from peaksight.live.torch_private import stop_recording

        if self._is_ours:
            stop_recording()
