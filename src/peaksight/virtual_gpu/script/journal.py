"""What the run and its worker processes leave word of: a file of lines in the scratch directory."""

import json
import os
from collections.abc import Iterator
from typing import Any

from peaksight.virtual_gpu.script.session import trusted


def note(root: str, what: str, *, slug: str) -> None:
    """Leave word below `root` that `what` was asked for and refused, under the `slug` of "Not simulated"."""
    record(root, "note", slug, what)


def record(root: str, kind: str, *values: Any) -> None:
    """Append one line."""
    with trusted, open(_path(root), "a") as journal:
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
