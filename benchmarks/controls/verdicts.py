"""Certificates of controls; runs of an original that several of them share are made once."""

from dataclasses import dataclass, replace
from pathlib import Path

from benchmarks.controls.table import Control, words_of
from peaksight.cli.script_words import script_command
from peaksight.errors import PeaksightError
from peaksight.records import ScriptCommand
from peaksight.records.certificate import Certificate
from peaksight.records.training import Job
from peaksight.verification.certify import certify
from peaksight.verification.experiment import Experiment
from peaksight.verification.processes import start_process
from peaksight.verification.runs import Recording, Start, record

_STEPS = 8


@dataclass(frozen=True, slots=True, kw_only=True)
class Answer:
    """What came of a control: a certificate, or the error that says why there is none."""

    control: Control
    certificate: Certificate | None
    error: PeaksightError | None = None

    @property
    def verdict(self) -> str:
        """The verdict; "no answer" for an error."""
        return self.certificate.verdict if self.certificate else "no answer"

    @property
    def mistakes(self) -> list[str]:
        """What is not as the table says."""
        expected, found = self.control, [] if self.verdict == self.control.verdict else [f"verdict: {self.verdict}"]
        if self.certificate is None:
            return found
        exercised = {each.name: each.exercised for each in self.certificate.mechanisms}
        found += [f"not exercised: {name}" for name in expected.exercised if not exercised[name]]
        return found + [f"exercised: {name}" for name in expected.not_exercised if exercised[name]]


class Verifier:
    """Verifies controls in `directory`, where it keeps the runs of originals; `start` starts their processes."""

    def __init__(self, directory: Path, start: Start = start_process) -> None:
        """Keep nothing yet."""
        self._directory = directory
        self._start = start
        self._kept: dict[tuple[ScriptCommand, Job], Recording] = {}

    def verify(self, control: Control) -> Answer:
        """Run what has not been run before, and judge."""
        original, changed = (script_command(words_of(each)) for each in (control.original, control.changed))
        experiment = Experiment(
            original_command=original,
            changed_command=changed,
            directory=self._directory / control.name,
            steps=_STEPS,
            record=self._record,
            say=lambda text: None,
        )
        try:
            return Answer(control=control, certificate=certify(experiment))
        except PeaksightError as error:
            return Answer(control=control, certificate=None, error=error)

    def _record(self, command: ScriptCommand, job: Job) -> Recording:
        """A run of an original starts from its own weights or from those of itself, so it is one for all."""
        where, weights = Path(job.directory), Path(job.weights).name if job.weights else ""
        key = (command, replace(job, directory=where.name, weights=weights))
        if not where.name.startswith("original"):
            return record(command, job, start=self._start)
        if key not in self._kept:
            self._kept[key] = record(command, job, start=self._start)
        return self._kept[key]
