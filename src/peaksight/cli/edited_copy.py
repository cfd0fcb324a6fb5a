"""A script's folder with some of its files edited, for a simulation; the folder itself stays as it is."""

import tempfile
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path, PurePath

_Contents = Mapping[tuple[str, ...], bytes]


@contextmanager
def edited_copy(folder: Path, after: Mapping[str, bytes]) -> Iterator[Path]:
    """A folder in which everything of `folder` is found, the files `after` (`pkg/model.py`) with that content."""
    with tempfile.TemporaryDirectory(prefix="peaksight-edited-") as name:
        there = Path(name).resolve()
        _mirror(folder.resolve(), there, {PurePath(file).parts: content for file, content in after.items()})
        yield there


def _mirror(folder: Path, there: Path, after: _Contents) -> None:
    """Links for what stays; copies of Python's files, for a traceback names the place where they really are."""
    for entry in folder.iterdir():
        inside = {parts[1:]: content for parts, content in after.items() if parts[0] == entry.name}
        place = there / entry.name
        if () in inside:
            place.write_bytes(inside[()])
        elif inside:
            place.mkdir()
            _mirror(entry, place, inside)
        elif entry.suffix == ".py" and entry.is_file():
            place.write_bytes(entry.read_bytes())
        else:
            place.symlink_to(entry)
