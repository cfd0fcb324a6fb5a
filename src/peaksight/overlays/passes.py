"""When a pass of the training loop ends: every optimizer has stepped."""

from typing import Any
from weakref import WeakKeyDictionary, WeakSet, ref


class Passes:
    """Follows the optimizers of one script: a pass ends when every one seen so far has stepped.

    One that was replaced is not waited for, however long the script keeps it: another, seen later, that trains
    parameters of the same shapes steps twice while it does not.
    """

    def __init__(self) -> None:
        """No optimizer has been seen."""
        self._seen: WeakKeyDictionary[Any, None] = WeakKeyDictionary()  # in the order in which they came
        self._stepped: WeakSet[Any] = WeakSet()
        self._only: ref[Any] | None = None  # the one that has stepped, as long as it is the only one

    def ended_by(self, optimizer: Any) -> bool:
        """`optimizer` stepped: whether that ended a pass."""
        if self._only is not None and self._only() is optimizer:
            return True
        self._only = None
        if optimizer in self._stepped:
            self._forget_replaced_by(optimizer)
        self._seen[optimizer] = None
        self._stepped.add(optimizer)
        if len(self._stepped) < len(self._seen):
            return False
        self._stepped.clear()
        self._only = ref(optimizer) if len(self._seen) == 1 else None
        return True

    def begin_anew(self) -> None:
        """The pass was cut short: those of it that go on will be seen again."""
        self._seen.clear()
        self._stepped.clear()
        self._only = None

    def _forget_replaced_by(self, optimizer: Any) -> None:
        seen = list(self._seen)
        for earlier in seen[: seen.index(optimizer)]:
            if earlier not in self._stepped and _shapes(earlier) == _shapes(optimizer):
                del self._seen[earlier]


def _shapes(optimizer: Any) -> list[tuple[int, ...]]:
    return [tuple(parameter.shape) for group in optimizer.param_groups for parameter in group["params"]]
