"""What `peaksight read` does with a memory snapshot."""

from collections.abc import Callable
from pathlib import Path

from peaksight.attribution import build_recording_report
from peaksight.cli.output import Output
from peaksight.diagnosis.recordings import diagnosed
from peaksight.postmortem.snapshots import read_snapshot
from peaksight.records.recording import RecordingReport

_LARGE_BYTES = 50_000_000


def read_recording(path: Path, output: Output) -> RecordingReport:
    """The report of the snapshot at `path`; of a large one, `output` says each tenth that was read.

    Raises:
        SnapshotError: `path` is no snapshot, or one of nothing.
    """
    progress = _tenths(path.name, output) if path.stat().st_size > _LARGE_BYTES else None
    return diagnosed(build_recording_report(read_snapshot(path, progress), path.name))


def _tenths(name: str, output: Output) -> Callable[[float], None]:
    said = 0

    def progress(part: float) -> None:
        nonlocal said
        if int(10 * part) > said:
            said = int(10 * part)
            output.progress(f"{10 * said} % of {name} read")

    return progress
