"""Which lines of the script hold memory of the card: the allocator's own history, recorded for a few steps."""

from collections import Counter
from pathlib import PurePath

from peaksight.live.allocator_lines import source_of
from peaksight.live.torch_private import history_is_recorded


class AllocatorHolders:
    """Has the allocator note the Python stack of what is alive, not of what was freed."""

    def __init__(self) -> None:
        """Nothing is recorded yet."""
        self._is_ours = False

    def begin(self) -> bool:
        """Start to record, unless the script or the capsule does already."""
        import torch

        self._is_ours = not history_is_recorded()
        if self._is_ours:
            torch.cuda.memory._record_memory_history("state", context="state", stacks="python", max_entries=1)
        return True

    def bytes_by_line(self, device: int) -> dict[str, int]:
        """What was allocated since `begin` and is alive, by line; what no Python code allocated has an empty one."""
        import torch

        held: Counter[str] = Counter()
        for segment in torch.cuda.memory._snapshot(device)["segments"]:
            if segment["device"] == device:
                for block in segment["blocks"]:
                    if block["state"] == "active_allocated" and block.get("frames") is not None:
                        held[PurePath(source_of(block["frames"])).name] += block["size"]
        return dict(held)

    def end(self) -> None:
        """Stop, if it was us who started."""
        import torch

        if self._is_ours:
            torch.cuda.memory._record_memory_history(None)
