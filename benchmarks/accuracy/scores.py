"""How far a prediction is from the measurement."""

from collections import Counter
from dataclasses import dataclass

from benchmarks.accuracy.predictions import Prediction
from benchmarks.accuracy.workloads import Workload
from peaksight.records import Phase, Report


@dataclass(frozen=True, slots=True, kw_only=True)
class Score:
    """Peaks in bytes, errors as fractions of the measured peak.

    The process is what nvidia-smi shows at the end, when everything that was ever reserved still is. `line_share` is
    the part of the measured live set that the prediction puts on the same line of the script. Only bytes whose
    measurement names a line count, `line_bytes` of them: allocations of the backward have none.
    """

    name: str
    predicted_allocated_bytes: int
    measured_allocated_bytes: int
    predicted_reserved_bytes: int
    measured_reserved_bytes: int
    predicted_process_bytes: int
    measured_process_bytes: int
    line_share: float | None
    line_bytes: int
    seconds: float

    @property
    def allocated_error(self) -> float:
        """Signed; positive where the prediction is too high."""
        return self.predicted_allocated_bytes / self.measured_allocated_bytes - 1

    @property
    def reserved_error(self) -> float:
        """Signed; positive where the prediction is too high."""
        return self.predicted_reserved_bytes / self.measured_reserved_bytes - 1

    @property
    def process_error(self) -> float:
        """Signed; positive where the prediction is too high."""
        return self.predicted_process_bytes / self.measured_process_bytes - 1

    @property
    def outside_error_bytes(self) -> int:
        """Of what the process holds beside reserved memory: context, kernels and handles."""
        predicted = self.predicted_process_bytes - self.predicted_reserved_bytes
        return predicted - (self.measured_process_bytes - self.measured_reserved_bytes)


def score(prediction: Prediction) -> Score:
    """Compare the report of `prediction`, which must have one, with the measurement."""
    report, workload = prediction.report, prediction.workload
    assert report is not None
    return Score(
        name=workload.name,
        predicted_allocated_bytes=report.peak.allocated_bytes,
        measured_allocated_bytes=workload.measured["peak_allocated"],
        predicted_reserved_bytes=report.peak.reserved_bytes,
        measured_reserved_bytes=workload.measured["peak_reserved"],
        predicted_process_bytes=report.peak.process_bytes,
        measured_process_bytes=workload.measured["nvml_process"],
        line_share=_line_share(report, workload),
        line_bytes=_measured_bytes_by_line(workload).total(),
        seconds=prediction.seconds,
    )


def _line_share(report: Report, workload: Workload) -> float | None:
    measured = _measured_bytes_by_line(workload)
    predicted = _predicted_bytes_by_line(report)
    total = sum(measured.values())
    return (measured & predicted).total() / total if total else None


def _measured_bytes_by_line(workload: Workload) -> Counter[str]:
    """Rows of `live_at_peak` read `innermost frame < frame of the script`, each `file.py:line:function`."""
    by_line: Counter[str] = Counter()
    for num_bytes, _, frames in workload.measured["live_at_peak"]:
        line = frames.split(" < ")[-1].rpartition(":")[0]
        if line.startswith(workload.words[0]):
            by_line[line] += num_bytes
    return by_line


def _predicted_bytes_by_line(report: Report) -> Counter[str]:
    by_line: Counter[str] = Counter()
    for holder in report.live_at_peak:
        if holder.phase is not Phase.BACKWARD:
            by_line[holder.source] += holder.bytes
    return by_line
