"""What a capsule keeps of the allocator at a failure: who holds its blocks, and its memory snapshot."""

import sys
from typing import Any

from peaksight.live import running
from peaksight.live.allocator_lines import holders_of, lines_of
from peaksight.live.capsule_file import CapsuleFile, TooLarge
from peaksight.records.capsule import CapsuleCard


def put_snapshot(file: CapsuleFile, card: CapsuleCard) -> bool:
    """Write it to `file`, as it is on `card`, as far as there is room and time; whether some of it was left out."""
    try:
        names = running.names_of_tensors()
        snapshot = _snapshot()
        paths = {name.address: name.module for name in names}
        file.write("holders", {"holders": holders_of(snapshot, card.device, paths)})
        file.write("names", {"names": names})
        for kind, content in lines_of(snapshot):
            file.write(kind, content)
    except TooLarge:
        return True
    return False


def _snapshot() -> dict[str, Any]:
    """Of a script without torch there is none."""
    if "torch" not in sys.modules:
        return {}
    from peaksight.live.torch_private import memory_snapshot

    return memory_snapshot() or {}
