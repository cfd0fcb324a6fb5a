"""What `peaksight read` does with what a watched run left: capsules, records, the errors that torchelastic keeps."""

from collections.abc import Iterable, Iterator
from pathlib import Path

from peaksight.diagnosis.capsules import explain_capsule
from peaksight.diagnosis.run_traces import Trace
from peaksight.errors import UsageError
from peaksight.postmortem.capsules import is_capsule, read_capsule
from peaksight.postmortem.error_files import read_error_file
from peaksight.records.capsule import SUFFIX, part_of
from peaksight.records.watched_file import is_watched, read_watched

_RECORDS = "*.jsonl"
_ERRORS = "error.json"


def expanded(paths: Iterable[Path]) -> list[Path]:
    """`paths`, and for each directory what watched runs left in it.

    Raises:
        UsageError: a directory has nothing of the kind.
    """
    return [file for path in paths for file in (_in_directory(path) if path.is_dir() else [path])]


def _in_directory(directory: Path) -> list[Path]:
    files = [path for pattern in (f"*{SUFFIX}", _RECORDS, _ERRORS) for path in sorted(directory.rglob(pattern))]
    ours = (path for path in files if path.suffix != ".jsonl" or is_watched(path))
    found = [*ours, *_never_finished(directory)]
    if not found:
        raise UsageError(
            f"There is nothing of a watched run in {directory}: name the directory that `peaksight watch` wrote to, or "
            "the logs.",
            slug="nothing-watched",
        )
    return found


def _never_finished(directory: Path) -> Iterator[Path]:
    """Capsules whose process ended while it wrote, where there is no earlier one in their place."""
    for path in sorted(directory.rglob(part_of(Path(f"*{SUFFIX}")).name)):
        if not path.with_suffix("").exists():
            yield path


def trace_in(path: Path) -> Trace | None:
    """What one file of a watched run tells, None if it is none.

    Raises:
        CaptureFileError: it is one that cannot be read.
    """
    if is_capsule(path):
        report = explain_capsule(read_capsule(path), str(path))
        return Trace(source=str(path), process=report.run.process, capsule=report)
    if is_watched(path):
        watched = read_watched(path)
        return Trace(source=str(path), process=watched.process, watched=watched)
    error = read_error_file(path)
    if error is None:
        return None
    line = next(iter(error.message.splitlines()), "")
    return Trace(source=str(path), rank=error.rank, told=line, time=error.time)
