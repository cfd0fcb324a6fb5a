"""The page of `peaksight read`: logs, memory snapshots, capsules and profiles, one answer below the other."""

from collections.abc import Sequence

from peaksight.records import JobReading, Reading
from peaksight.records.capsule_report import RunReading
from peaksight.records.device_profile import DeviceProfile
from peaksight.records.recording import RecordingReport
from peaksight.reporting import capsule, device_profile, recording_sentences
from peaksight.reporting.json import answers_to_json
from peaksight.reporting.pages import assets
from peaksight.reporting.pages.frame import render_page

Answer = Reading | JobReading | RecordingReport | DeviceProfile | RunReading

_TEMPLATES = {
    Reading: "read/reading.html",
    JobReading: "read/job.html",
    RecordingReport: "read/recording.html",
    DeviceProfile: "read/profile.html",
    RunReading: "read/run.html",
}


def answers_to_html(answers: Sequence[Answer]) -> str:
    """`answers` as a page that opens anywhere; of the first recording in them the course and the map are drawn."""
    recordings = [found for answer in answers if (found := _recording_of(answer)) is not None]
    has_charts = bool(recordings) or any(isinstance(each, RunReading) and each.report for each in answers)
    return render_page(
        "read.html",
        answers_to_json(answers),
        scripts=assets.READ if has_charts else assets.PLAIN,
        charts=has_charts,
        answers=[(_TEMPLATES[type(answer)], answer) for answer in answers],
        files=[file for answer in answers for file in _files(answer)],
        drawn=recordings[0] if recordings else None,
        words=recording_sentences,
        capsules=capsule,
        profiles=device_profile,
    )


def _recording_of(answer: Answer) -> RecordingReport | None:
    if isinstance(answer, RunReading):
        return answer.report.recording if answer.report else None
    return answer if isinstance(answer, RecordingReport) else None


def _files(answer: Answer) -> tuple[str, ...]:
    """What the answer was read from."""
    match answer:
        case RecordingReport():
            return (answer.file,)
        case DeviceProfile():
            return (answer.source,)
        case RunReading():
            return (answer.report.file,) if answer.report else tuple(end.source for end in answer.others)
        case JobReading():
            return *answer.reading.sources, *(end.source for end in answer.others)
    return answer.sources
