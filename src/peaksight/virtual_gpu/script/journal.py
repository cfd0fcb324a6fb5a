"""What the run and its worker processes leave word of: a file of lines in the scratch directory."""

import json
import os
from collections.abc import Iterator
from typing import Any

from peaksight.virtual_gpu.script.session import active, trusted


def note(slug: str, what: str) -> None:
    """Leave word that `what` was switched off, under the `slug` of the report's "Not simulated"."""
    record("note", slug, what)


def record(kind: str, *values: Any) -> None:
    """Append one line to the journal of the scratch in force."""
    with trusted, open(_path(active().root), "a") as journal:
        journal.write(json.dumps([kind, *values]) + "\n")


def records(root: str, kind: str) -> Iterator[list[Any]]:
    """The values of every line of this `kind`, in order."""
    if not os.path.exists(_path(root)):
        return
    with open(_path(root)) as journal:
        for line in journal:
            found, *values = json.loads(line)
            if found == kind:
                yield values


def _path(root: str) -> str:
    return os.path.join(root, "journal")
