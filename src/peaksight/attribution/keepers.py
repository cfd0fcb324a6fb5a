"""What keeps a block alive: its role, the node that saves it for a backward pass, or a name of the script."""

from collections.abc import Iterable

from peaksight.records import Allocation, Capture, Hold, Phase, Role

_BY_ROLE = {
    Role.PARAMETER: "parameter",
    Role.GRADIENT: "gradient of a parameter",
    Role.OPTIMIZER_STATE: "optimizer state",
    Role.BUFFER: "buffer of a module",
    Role.WORKSPACE: "workspace of a library",
    Role.COMMUNICATION: "bucket of a process group",
}


class Keepers:
    """Who keeps the blocks of one capture; empty where the record does not tell, or a running operator does."""

    def __init__(self, capture: Capture) -> None:
        """Index the looks of `capture`."""
        self._holds: dict[int, Hold] = _last_by_birth(capture.holds)

    def of(self, allocation: Allocation) -> str:
        """In words: `saved for backward by MmBackward0`, `outputs.logits in train.py:main`."""
        if allocation.role in _BY_ROLE:
            return _BY_ROLE[allocation.role]
        hold = self._holds.get(allocation.born)
        named = f"{hold.name} in {hold.where}" if hold is not None and not hold.by_graph else ""
        if allocation.saved_by:
            saved = f"saved for backward by {allocation.saved_by}"
            return f"{saved}; {named}" if named else saved
        if allocation.phase is Phase.BACKWARD and allocation.grad_enabled:
            return "recomputed for backward"
        return named


def _last_by_birth(holds: Iterable[Hold]) -> dict[int, Hold]:
    """The last look at each block, one with a name of its own before one by a graph."""
    last: dict[int, Hold] = {}
    for hold in holds:
        before = last.get(hold.born)
        if before is None or before.by_graph or not hold.by_graph:
            last[hold.born] = hold
    return last
