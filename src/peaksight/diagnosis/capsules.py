"""One OOM capsule explained: by the rules for snapshots, by those for logs where a library failed, and by its card."""

import shlex
from collections.abc import Iterator
from dataclasses import replace
from itertools import pairwise

from peaksight.attribution import build_recording_report
from peaksight.diagnosis.logs import explain
from peaksight.diagnosis.logs.accounts import USUAL_OUTSIDE_BYTES
from peaksight.diagnosis.recordings import diagnosed
from peaksight.records import Cause, Confidence, Phase
from peaksight.records.capsule import Capsule, Sign
from peaksight.records.capsule_report import CapsuleReport, OpenedCapsule
from peaksight.records.recording import RecordingReport
from peaksight.units import MIB, format_bytes

CAPSULE_SCHEMA = "peaksight.capsule-report/1"
_ORDER = (Confidence.CERTAIN, Confidence.LIKELY, Confidence.POSSIBLE)
_NOTABLE_BYTES = 256 * MIB
_NUM_PROCESSES = 5
# So many steps in a row that each leave more behind are no chance; together they have to be worth a word.
_NUM_GROWING = 5
_NOTABLE = 0.02
_NUM_BEFORE = 3
_FAR_MORE = 1.5
# What a snapshot alone cannot tell, and a capsule does.
_NOT_UNKNOWN = (
    "Which step of the training this is",
    "The card, the release of torch",
    "Whether it ran out of memory",
    "What happened before: no event",
)
_LIBRARIES = {
    Sign.DRIVER: "The driver",
    Sign.CUBLAS: "cuBLAS",
    Sign.CUDNN: "cuDNN",
    Sign.CUSOLVER: "cuSOLVER",
    Sign.CUSPARSE: "cuSPARSE",
    Sign.CUFFT: "cuFFT",
    Sign.NCCL: "NCCL",
}


def explain_capsule(opened: OpenedCapsule, path: str) -> CapsuleReport:
    """The report of one capsule, which is at `path`."""
    capsule = opened.capsule
    recording = _recording_report(opened)
    oom = recording.oom if recording else None
    at, phase = (oom.at or opened.at, oom.phase) if oom else (opened.at, opened.phase)
    return CapsuleReport(
        schema=CAPSULE_SCHEMA,
        file=capsule.file,
        happened=_happened(capsule, at, phase),
        then=_then(capsule),
        at=at,
        backward_at=opened.backward_at,
        phase=phase,
        run=capsule.run,
        failure=capsule.failure,
        ending=capsule.ending,
        steps=capsule.steps,
        holders=capsule.holders,
        others_bytes=others_bytes(capsule),
        causes=_causes(opened, recording),
        cannot_tell=tuple(_cannot_tell(capsule, recording)),
        recording=recording,
        run_next=f"peaksight fix --from {shlex.quote(path)}",
    )


def others_bytes(capsule: Capsule) -> int | None:
    """What other processes hold of the card: as the driver counts them, else what nothing else explains.

    None where the capsule does not tell. In a container the driver may hide processes, this one as well.
    """
    card = capsule.failure.card
    counted = [process.bytes for process in card.processes if not process.is_this]
    if any(process.is_this for process in card.processes) and None not in counted:
        return sum(size or 0 for size in counted)
    if card.total_bytes is None or card.free_bytes is None or card.reserved_bytes is None:
        return None
    return max(0, card.total_bytes - card.free_bytes - card.reserved_bytes - USUAL_OUTSIDE_BYTES)


def _recording_report(opened: OpenedCapsule) -> RecordingReport | None:
    """As of a snapshot; the capsule knows the card and the script."""
    own = [each for each in opened.recordings if each.device == opened.capsule.failure.card.device]
    if not own:
        return None
    card, process = opened.capsule.failure.card, opened.capsule.run.process
    report = build_recording_report(opened.recordings, opened.capsule.file)
    gpu = replace(report.gpu, name=card.name, total_bytes=card.total_bytes)
    unknown = tuple(line for line in report.cannot_tell if not line.startswith(_NOT_UNKNOWN))
    report = diagnosed(replace(report, gpu=gpu, cannot_tell=unknown))
    return replace(report, script=process.argv[0] if process.argv else report.script)


def _causes(opened: OpenedCapsule, recording: RecordingReport | None) -> tuple[Cause, ...]:
    """Those of the card, of the library that failed, of the snapshot, of the steps and of the message, each once."""
    capsule = opened.capsule
    of_the_steps = [*_growing(capsule)] or [*_larger_than_before(capsule)]
    found = [*_of_a_library(capsule), *_of_the_card(capsule), *of_the_steps, *(recording.causes if recording else ())]
    if capsule.failure.sign is not Sign.ALLOCATOR:
        found += explain(opened.message).causes
    kinds: dict[str, Cause] = {}
    for cause in sorted(found, key=lambda cause: _ORDER.index(cause.confidence)):
        kinds.setdefault(cause.kind, cause)
    return tuple(kinds.values())


def _of_the_card(capsule: Capsule) -> Iterator[Cause]:
    """A limit that somebody set; other processes that hold what was missing."""
    card, asked = capsule.failure.card, capsule.failure.requested_bytes or 0
    free, reserved = card.free_bytes or 0, card.reserved_bytes or 0
    if card.allowed_bytes is not None and reserved + asked > card.allowed_bytes and free >= asked:
        yield Cause(
            kind="memory-fraction-cap",
            title="A cap on this process is reached, not the card's size",
            confidence=Confidence.CERTAIN,
            evidence=(
                f"{format_bytes(card.allowed_bytes)} allowed of {format_bytes(card.total_bytes or 0)}; "
                f"{format_bytes(free)} are free",
            ),
            try_first="Raise or remove torch.cuda.set_per_process_memory_fraction (per_process_memory_fraction in "
            "the allocator's settings).",
        )
    others = others_bytes(capsule) or 0
    if others >= max(asked - free, _NOTABLE_BYTES):
        named = [p for p in card.processes if not p.is_this and p.bytes]
        largest = sorted(named, key=lambda p: -(p.bytes or 0))[:_NUM_PROCESSES]
        evidence = [f"process {p.pid} ({p.name or 'unknown'}) has {format_bytes(p.bytes or 0)}" for p in largest]
        yield Cause(
            kind="other-process-holds-card",
            title=f"Other processes hold {format_bytes(others)} of the card, without which this request fits",
            confidence=Confidence.LIKELY if named else Confidence.POSSIBLE,
            evidence=tuple(evidence) or ("neither PyTorch's allocator nor what is free explains them",),
            try_first="nvidia-smi: end what is left over from earlier runs, or choose a free card "
            "(CUDA_VISIBLE_DEVICES).",
        )


def _of_a_library(capsule: Capsule) -> Iterator[Cause]:
    """A library asks the driver itself: what PyTorch keeps reserved is not there for it."""
    failure, card = capsule.failure, capsule.failure.card
    if failure.sign is Sign.ALLOCATOR:
        return
    figures: tuple[str, ...] = ()
    if card.reserved_bytes is not None and card.free_bytes is not None:
        unused = card.reserved_bytes - (card.allocated_bytes or 0)
        figures = (
            f"PyTorch has {format_bytes(card.reserved_bytes)} reserved, {format_bytes(unused)} of it unused; "
            f"{format_bytes(card.free_bytes)} of the card are free",
        )
    yield Cause(
        kind="library-without-room",
        title=f"{_LIBRARIES[failure.sign]} found too little memory outside of PyTorch's allocator",
        confidence=Confidence.LIKELY,
        evidence=(failure.message.splitlines()[0] if failure.message else failure.sign.value, *figures),
        try_first="Leave it room: torch.cuda.set_per_process_memory_fraction(0.9), or have the library make its "
        "handles and communicators before the first large batch.",
    )


def _larger_than_before(capsule: Capsule) -> Iterator[Cause]:
    """The step that failed needs far more than any of the last ones did."""
    failure, card = capsule.failure, capsule.failure.card
    peaks = [step.peak_allocated_bytes for step in capsule.steps if step.device == card.device]
    needed = (card.allocated_bytes or 0) + (failure.requested_bytes or 0)
    if len(peaks) >= _NUM_BEFORE and needed > _FAR_MORE * max(peaks):
        yield Cause(
            kind="outlier-batch",
            title=f"This step needs far more than those before it: {format_bytes(needed)} at least",
            confidence=Confidence.LIKELY,
            evidence=(f"the last {len(peaks)} steps peaked at {format_bytes(max(peaks))} or less",),
            try_first="Look at the batch of this step: cap the length of samples, sort them by it, or split it; "
            "`peaksight run --worst-batch` shows the longest.",
        )


def _growing(capsule: Capsule) -> Iterator[Cause]:
    """What is left at the end of each step grows with every one of the last ones."""
    device = capsule.failure.card.device
    left = [step.allocated_bytes for step in capsule.steps if step.device == device][-_NUM_GROWING:]
    if len(left) < _NUM_GROWING or any(after <= before for before, after in pairwise(left)):
        return
    per_step = (left[-1] - left[0]) // (len(left) - 1)
    if per_step * len(left) >= _NOTABLE * max(left[-1], 1):
        yield Cause(
            kind="memory-grows-over-steps",
            title=f"Each step leaves more behind: {format_bytes(per_step)} a step over the last {len(left)}",
            confidence=Confidence.LIKELY,
            evidence=(f"{format_bytes(left[0])}, then {format_bytes(left[-1])} allocated at the ends of steps",),
            try_first="Keep no tensor of the card over steps: loss.item() or outputs.detach().cpu(), not the tensor.",
        )


def _happened(capsule: Capsule, at: str, phase: Phase) -> str:
    """The failure in one sentence."""
    failure, card, process = capsule.failure, capsule.failure.card, capsule.run.process
    rank = f"Rank {process.rank} of {process.world_size} on {process.host}" if process.world_size > 1 else "The run"
    who = f"{rank} ran out of memory in step {failure.step}"
    where = f" at {at}" if at else ""
    when = f" ({phase.value})" if phase is not Phase.OTHER else ""
    if failure.sign is not Sign.ALLOCATOR:
        return f"{who}{where}{when}: {_LIBRARIES[failure.sign]} could not have memory."
    asked = f"asked for {format_bytes(failure.requested_bytes)}" if failure.requested_bytes else "the card was full"
    free = f", with {format_bytes(card.free_bytes)} free" if card.free_bytes is not None else ""
    of = f" of {card.name} ({format_bytes(card.total_bytes)})" if free and card.total_bytes else ""
    return f"{who}{where}{when}: {asked}{free}{of}."


def _then(capsule: Capsule) -> str:
    """What became of the process, in one sentence."""
    ending, failure = capsule.ending, capsule.failure
    if ending is None:
        return "How the process ended is not in the capsule: it was killed, aborted, or still ran when this was copied."
    times = f", after memory had run out {failure.number} times" if failure.number > 1 else ""
    if ending.is_out_of_memory:
        return f"It ended the script{times}."
    if not ending.error:
        return f"The script got over it and ended in step {ending.step} with exit code {ending.exit_code}{times}."
    return f"The script got over it{times}; {ending.error} ended it in step {ending.step}."


def _cannot_tell(capsule: Capsule, recording: RecordingReport | None) -> Iterator[str]:
    if not capsule.is_whole:
        yield "What else was to be in the capsule: it was cut short, as on a full disk or by a kill in between."
    if capsule.left_out:
        yield "Earlier allocations: the capsule was as large, or took as long to write, as it may."
    if recording is None:
        yield "What is alive by category and step: there is no snapshot of the card in the capsule."
    else:
        yield from recording.cannot_tell
        if not recording.num_events:
            yield (
                "What happened before, and the lines of what was allocated meanwhile: the allocator's history was off, "
                "so the peak is that of the moment of the failure."
            )
    if capsule.run.torch and not capsule.failure.card.processes:
        yield "Which other processes are on the card: the driver did not tell (is nvidia-ml-py installed?)."
