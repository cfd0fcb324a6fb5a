"""What a dialect is: where its messages begin, and the clauses that may follow in them."""

import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from typing import Any

from peaksight.postmortem.figures import parse_figure
from peaksight.records import Figure, Memory, OomMessage, ProcessUse

# How far a message reaches behind its first words, in characters.
SPAN = 1600
_EXCERPT = 700


@dataclass(frozen=True, slots=True, kw_only=True)
class Dialect:
    """The grammar of one family of messages.

    A message begins where `start` matches and ends before the next beginning of any dialect. Every clause is optional,
    so that one that is cut short or jumbled with another rank's still gives what it holds. `clauses` pairs the name of
    a figure with a pattern whose first group is the size. `needles` are lower-case words without one of which `start`
    never matches. `name` may be refined by `refine` from what was found.
    """

    name: str
    framework: str
    memory: Memory
    start: re.Pattern[str]
    needles: tuple[str, ...]
    clauses: tuple[tuple[str, re.Pattern[str]], ...] = ()
    device: re.Pattern[str] | None = None
    processes: re.Pattern[str] | None = None
    shape: re.Pattern[str] | None = None
    unit_bytes: int | None = None
    is_warning: bool = False
    span: int = SPAN
    refine: Callable[[OomMessage], OomMessage] | None = None

    def starts(self, text: str) -> Iterator[tuple[int, int]]:
        """Where messages begin in `text`, and where their first words end."""
        return ((match.start(), match.end()) for match in self.start.finditer(text))

    def parse(self, body: str, line: int) -> OomMessage:
        """The message that `body` begins with; asterisks are those of a page that it was pasted into."""
        body = body.replace("**", "")
        figures = tuple(self._figures(body))
        sizes: dict[str, Any] = {f"{figure.name}_bytes": figure.bytes for figure in reversed(figures)}
        message = OomMessage(
            dialect=self.name,
            framework=self.framework,
            memory=self.memory,
            line=line,
            text=" ".join(body[:_EXCERPT].split()),
            is_warning=self.is_warning,
            device=_first(self.device, body),
            figures=figures,
            processes=tuple(self._processes(body)),
            shape=_first(self.shape, body),
            **{name: size for name, size in sizes.items() if name in _FIELDS},
        )
        return self.refine(message) if self.refine else message

    def _figures(self, body: str) -> Iterator[Figure]:
        for name, pattern in self.clauses:
            for match in pattern.finditer(body):
                figure = parse_figure(name, match[1], unit_bytes=self.unit_bytes)
                if figure is not None:
                    yield figure

    def _processes(self, body: str) -> Iterator[ProcessUse]:
        for match in self.processes.finditer(body) if self.processes else ():
            figure = parse_figure("process", match["size"])
            if figure is not None and figure.bytes is not None:
                device = match.groupdict().get("device") or ""
                yield ProcessUse(pid=int(match["pid"]), bytes=figure.bytes, printed=figure.printed, device=str(device))


_FIELDS = {f"{name}_bytes" for name in "requested capacity free allocated reserved idle process limit".split()}


def _first(pattern: re.Pattern[str] | None, body: str) -> str:
    match = pattern.search(body) if pattern else None
    return next((group for group in match.groups() if group is not None), "").strip() if match else ""


def with_field(message: OomMessage, **fields: int | str | None) -> OomMessage:
    """`message` with derived fields set where they were unknown."""
    unknown: dict[str, Any] = {name: value for name, value in fields.items() if getattr(message, name) in (None, "")}
    return replace(message, **unknown)
