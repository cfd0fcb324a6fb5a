"""The net under the redirection: a PEP 578 audit hook that refuses what would reach the world outside the scratch."""

import sys
from collections.abc import Callable, Mapping
from typing import Any

from peaksight.virtual_gpu.script.session import active

# Called with the overlay and the arguments of the event; raises to refuse.
Guard = Callable[..., None]
_guards: dict[str, Guard] = {}


def install(guards: Mapping[str, Guard]) -> None:
    """Have each audit event of `guards` checked by its guard while a scratch is in force.

    Audit hooks cannot be removed: there is one for the life of the process, and for processes forked from it.
    """
    if not _guards:
        _guards.update(guards)
        sys.addaudithook(_hook)


def _hook(event: str, args: tuple[Any, ...]) -> None:
    guard = _guards.get(event)
    if guard is not None and (overlay := active()) is not None:
        guard(overlay, *args)
