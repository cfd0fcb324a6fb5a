"""When Python looks for unreachable cycles: rarely until the card is used, for so long they hold no memory of it.

Imports make a million objects that stay. To go through them again and again takes a tenth of a short run.
"""

import gc

_RARELY = (100_000, 50, 1000)
_usual: tuple[int, int, int] | None = None


def collect_rarely() -> None:
    """Look for cycles only after very many new objects."""
    global _usual
    if _usual is None:
        _usual = gc.get_threshold()
        gc.set_threshold(*_RARELY)


def collect_as_usual() -> None:
    """Look for them as often as before `collect_rarely`, or as the script has said since."""
    global _usual
    if _usual is not None and gc.get_threshold() == _RARELY:
        gc.set_threshold(*_usual)
    _usual = None
