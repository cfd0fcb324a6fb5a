"""Attributes replaced for the length of a run, and put back after it."""

from contextlib import ExitStack
from typing import Any

_ABSENT = object()


class Patches(ExitStack):
    """A stack of replaced attributes; leaving the context restores them in reverse order."""

    def set(self, owner: Any, name: str, value: Any) -> Any:
        """Replace `owner.name` by `value`, remembering whether it was there; returns what it was, or None."""
        before = vars(owner).get(name, _ABSENT) if isinstance(owner, type) else getattr(owner, name, _ABSENT)
        self.callback(_restore, owner, name, before)
        setattr(owner, name, value)
        return None if before is _ABSENT else before


def _restore(owner: Any, name: str, before: Any) -> None:
    if before is _ABSENT:
        delattr(owner, name)
    else:
        setattr(owner, name, before)
