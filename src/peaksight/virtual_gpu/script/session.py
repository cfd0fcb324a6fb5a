"""Which overlay is in force, and the sections of our own code in which it is not."""

import os
import threading
from collections.abc import Iterable
from typing import Any
from weakref import WeakKeyDictionary

from peaksight.virtual_gpu.script.overlay import Overlay


class _Trusted(threading.local):
    """`with trusted:` our own code sees the real files; the audit net still refuses it writes outside the scratch."""

    depth = 0

    def __enter__(self) -> None:
        self.depth += 1

    def __exit__(self, *exc_info: object) -> None:
        self.depth -= 1


trusted = _Trusted()
_overlay: Overlay | None = None
_left_behind: WeakKeyDictionary[threading.Thread, Overlay] = WeakKeyDictionary()


def activate(overlay: Overlay | None) -> None:
    """Put `overlay` in force in this process, and in those forked from it; None for the real files."""
    global _overlay
    _overlay = overlay


def leave_behind(threads: Iterable[threading.Thread], overlay: Overlay) -> None:
    """Keep the audit net under `threads`, which the script started and which outlive it."""
    _left_behind.update(dict.fromkeys(threads, overlay))


def active() -> Overlay | None:
    """The overlay in force for the audit net, which trusts no section."""
    if _overlay is None and _left_behind:
        return _left_behind.get(threading.current_thread())
    return _overlay


def current() -> Overlay | None:
    """The overlay that the calling code sees; None when none is in force or in a trusted section."""
    return None if trusted.depth else _overlay


def current_for_reading() -> Overlay | None:
    """The overlay that a read has to ask: None also while it holds nothing, when the real files are what is seen."""
    overlay = current()
    return None if overlay is None or overlay.pristine else overlay


class redirecting:
    """A trusted section around one redirected call: errors name the files as the script did."""

    def __init__(self, *names: Any) -> None:
        """Remember the paths as the script gave them."""
        self._names = names

    def __enter__(self) -> None:
        """Trust what follows."""
        trusted.depth += 1

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, traceback: object) -> None:
        """Trust no longer."""
        trusted.depth -= 1
        if isinstance(error, OSError) and error.errno is not None:
            names = [name if isinstance(name, int) else os.fspath(name) for name in self._names]
            error.filename = names[0]
            if len(names) > 1:
                error.filename2 = names[1]
