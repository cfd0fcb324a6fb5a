"""The files of a script as they are, and as the changes of a plan make them."""

from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING

from peaksight.extras import is_installed
from peaksight.planning.diffs import unified_diff
from peaksight.planning.knob_values import CannotEditError
from peaksight.records.source_edit import SourceEdit

if TYPE_CHECKING:
    from peaksight.planning.editing import CallEdit


class EditedFiles:
    """Files of the script's folder, by their names from there; none is changed on disk.

    `arguments` are the script's where an edit is of the line that launches it, else None.
    """

    def __init__(self, script: Path) -> None:
        """No edit was made yet."""
        self.script = script
        self._before: dict[str, bytes] = {}
        self._after: dict[str, bytes] = {}
        self._unfold: dict[str, list[int]] = {}
        self.arguments: tuple[str, ...] | None = None

    def name_of(self, path: Path) -> str:
        """`path` from the script's folder; empty where it is not in there."""
        folder, real = self.script.resolve().parent, path.resolve()
        return str(real.relative_to(folder)) if real.is_relative_to(folder) else ""

    def edit_text(self, file: str, edit: Callable[[str], tuple[str, list[int]]]) -> list[int]:
        """Have `edit` change the text of `file`, and the lines at which it did so; none where it cannot."""
        self.before(file)
        try:
            after, lines = edit(self._after[file].decode())
        except (CannotEditError, UnicodeDecodeError):
            return []
        self._after[file] = after.encode()
        return lines

    def before(self, file: str) -> bytes:
        """The content of `file`, named from the script's folder; empty where there is none."""
        if file not in self._before:
            path = self.script.parent / file
            self._before[file] = self._after[file] = path.read_bytes() if path.is_file() else b""
        return self._before[file]

    def edit_statement(self, edit: SourceEdit) -> None:
        """Make `edit`, whose lines are those of the file as it is."""
        self.before(edit.file)
        self._after[edit.file] = edit.made_in(self._after[edit.file])
        self._unfold.setdefault(edit.file, []).append(edit.line)

    def edit_calls(self, *edits: "CallEdit") -> list[int]:
        """Make all `edits` in the script, or none, and the lines of their calls as the person's file has them."""
        from peaksight.planning.editing import edited, pinned

        before, found = self.before(self.script.name), []
        after = self._after[self.script.name]
        for edit in edits:
            lines = edited(before, edit)[1]
            if not lines:
                return []
            found += lines
            after = edited(after, pinned(before, edit))[0]
        self._after[self.script.name] = after
        return sorted(found)

    @property
    def changed(self) -> dict[str, tuple[bytes, bytes]]:
        """Each file that edits change, before and after them."""
        pairs = {file: (before, self._final(file)) for file, before in self._before.items()}
        return {file: pair for file, pair in pairs.items() if pair[0] != pair[1]}

    def diff(self) -> str:
        """A unified diff of all files, for `patch -p1` in the folder of the script."""
        return "".join(unified_diff(before, after, file) for file, (before, after) in self.changed.items())

    def _final(self, file: str) -> bytes:
        lines = self._unfold.get(file)
        if not lines or not is_installed("libcst"):
            return self._after[file]
        from peaksight.planning.unfolding import unfolded

        return unfolded(self._after[file], lines)
