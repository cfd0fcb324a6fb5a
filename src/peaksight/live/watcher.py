"""What looks at each step for something that people should know."""

from collections.abc import Iterable
from typing import Any

from peaksight.records.watched import Line, WatchedStep

# The kind of an event, and what it says.
Saying = tuple[str, str]


class Watcher:
    """One that sees nothing; each watcher overrides what it looks at."""

    def optimizer_stepped(self, optimizer: Any) -> None:
        """One of the optimizers has stepped."""

    def after(self, step: WatchedStep) -> Iterable[Saying]:
        """What is to be said of `step`, which has just ended on one card."""
        return ()

    def happened(self, kind: str) -> None:
        """There was an event of this kind."""

    def at_end(self) -> Iterable[Line | Saying]:
        """What is known once the script has ended."""
        return ()
