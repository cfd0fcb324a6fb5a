"""Which lines of the script hold memory of the card: the allocator's own history, recorded for a few steps."""

from collections import Counter
from pathlib import PurePath

from peaksight.live.allocator_lines import source_of


class AllocatorHolders:
    """Reads them from a snapshot of the allocator."""

    def begin(self) -> bool:
        """Whether stacks are noted now, by whomever."""
        from peaksight.live.torch_private import history_is_recorded  # with the script's torch

        return history_is_recorded()

    def bytes_by_line(self, device: int) -> dict[str, int]:
        """What is alive and was allocated while stacks were noted, by line; an empty one where Python did not run."""
        from peaksight.live.torch_private import memory_snapshot

        held: Counter[str] = Counter()
        for segment in (memory_snapshot() or {"segments": ()})["segments"]:
            if segment["device"] == device:
                for block in segment["blocks"]:
                    if block["state"] == "active_allocated" and block.get("frames") is not None:
                        held[PurePath(source_of(block["frames"])).name] += block["size"]
        return dict(held)
