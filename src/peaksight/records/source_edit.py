"""A statement of a file in other words: a change of a plan of the kind `source-edit`."""

from dataclasses import asdict, dataclass
from typing import Any

from peaksight.errors import PlanError

SOURCE_EDIT = "source-edit"


@dataclass(frozen=True, slots=True, kw_only=True)
class SourceEdit:
    """`replacement` for `text`, which begins at `line` of `file`, as whole lines without the last line's end.

    `file` is named from the script's folder. Both have as many lines, so that all other lines keep their numbers.
    """

    file: str
    line: int
    text: str
    replacement: str

    @property
    def parameters(self) -> dict[str, Any]:
        """Those of the change of a plan."""
        return asdict(self)

    @property
    def at(self) -> str:
        """`train.py:40`."""
        return f"{self.file}:{self.line}"

    def made_in(self, source: bytes) -> bytes:
        """`source` of the file with the edit made.

        Raises:
            PlanError: there is something else at its lines, or the edit would move lines.
        """
        lines = source.decode("utf-8", errors="surrogateescape").split("\n")
        first, old, new = self.line - 1, self.text.split("\n"), self.replacement.split("\n")
        found = [line.removesuffix("\r") for line in lines[first : first + len(old)]]
        if found != old or len(new) != len(old):
            raise PlanError(
                f"Can't edit {self.at}: it no longer reads {old[0].strip()!r}. Make the plan again with "
                "`peaksight fix --apply`.",
                slug="plan-edit",
            )
        for place, (before, after) in enumerate(zip(old, new, strict=True), first):
            lines[place] = after + lines[place][len(before) :]
        return "\n".join(lines).encode("utf-8", errors="surrogateescape")
