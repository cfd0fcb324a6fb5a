"""The net under the redirection: a PEP 578 audit hook that refuses what would reach the world outside the scratch."""

import sys
import threading
from collections.abc import Callable, Mapping
from typing import Any

from peaksight.virtual_gpu.script.overlay import Overlay
from peaksight.virtual_gpu.script.session import active

# Called with the overlay and the arguments of the event; raises to refuse.
Guard = Callable[..., None]
_guards: dict[str, Guard] = {}


class _Lifted(threading.local):
    """`with lifted:` nothing is refused to this thread: for what Python itself writes."""

    depth = 0

    def __enter__(self) -> None:
        self.depth += 1

    def __exit__(self, *exc_info: object) -> None:
        self.depth -= 1


lifted = _Lifted()


def install(guards: Mapping[str, Guard]) -> None:
    """Have each audit event of `guards` checked by its guard while a scratch is in force.

    Audit hooks cannot be removed: there is one for the life of the process, and for processes forked from it.
    """
    if not _guards:
        _guards.update(guards)
        sys.addaudithook(_hook(_guards, lifted, active))


def _hook(
    guards: Mapping[str, Guard], lifted: _Lifted, active: Callable[[], Overlay | None]
) -> Callable[[str, tuple[Any, ...]], None]:
    """It holds all that it uses: as Python ends, modules are emptied while hooks are still called."""

    def check(event: str, args: tuple[Any, ...]) -> None:
        guard = guards.get(event)
        if guard is not None and not lifted.depth and (overlay := active()) is not None:
            guard(overlay, *args)

    return check
