"""The answer of `peaksight read` to the OOM capsules of one run."""

from dataclasses import dataclass

from peaksight.records.capsule import Capsule, CapsuleEnding, CapsuleFailure, CapsuleHolder, CapsuleRun
from peaksight.records.phases import Phase
from peaksight.records.reading import Cause, LogEvidence, RankEnd, ToldBy
from peaksight.records.recording import Recording, RecordingReport
from peaksight.records.watched import WatchedStep


@dataclass(frozen=True, slots=True, kw_only=True)
class OpenedCapsule:
    """A capsule as it was read: `recordings` are those of its snapshot, none where it was cut short before.

    `at` is the person's line of the thread that failed, `backward_at` where a backward pass was called, `message` the
    text of the error, read as a log.
    """

    capsule: Capsule
    recordings: tuple[Recording, ...]
    at: str
    backward_at: str
    phase: Phase
    message: LogEvidence


@dataclass(frozen=True, slots=True, kw_only=True)
class CapsuleReport:
    """One capsule explained. `happened` is one sentence, `then` another on what became of the process.

    `recording` is the answer for the snapshot in it, None where it was cut short before; `holders` are then what was
    alive by module and line. `causes` are all of them, those that the snapshot decides included. `others_bytes` is what
    other processes held of the card, None where that is not known. `run_next` shows more without a GPU.
    """

    schema: str
    file: str
    happened: str
    then: str
    at: str
    backward_at: str
    phase: Phase
    run: CapsuleRun
    failure: CapsuleFailure
    ending: CapsuleEnding | None
    steps: tuple[WatchedStep, ...]
    holders: tuple[CapsuleHolder, ...]
    others_bytes: int | None
    causes: tuple[Cause, ...]
    cannot_tell: tuple[str, ...]
    recording: RecordingReport | None
    run_next: str


@dataclass(frozen=True, slots=True, kw_only=True)
class RunReading:
    """What the processes of one run left behind, read together.

    `first_failing_rank` is None where nothing tells it, `clock_seconds` how far the clocks of its hosts may be apart
    (0 on one host, None where it is not known). `report` is that of the first failing rank, else of the lowest that has
    a capsule, None where no rank has one; `others` are the ranks beside it.
    """

    schema: str
    run: str
    happened: str
    first_failing_rank: int | None
    told_by: ToldBy
    clock_seconds: float | None
    report: CapsuleReport | None
    others: tuple[RankEnd, ...]
