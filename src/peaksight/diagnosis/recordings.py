"""Why a recorded run ran out of memory, as far as its snapshot decides it."""

from collections.abc import Iterator, Sequence
from dataclasses import replace

from peaksight.records import Category, Cause, Confidence, Holder, Phase
from peaksight.records.recording import RecordingReport
from peaksight.units import format_bytes

_MODEL_STATE = (Category.PARAMETER, Category.GRADIENT, Category.OPTIMIZER_STATE)
_EXPANDABLE = "expandable_segments:True"
# Less than this part of what is allocated is not worth a word.
_NOTABLE = 0.02
_NUM_LINES = 3


def diagnosed(report: RecordingReport) -> RecordingReport:
    """`report` with its causes, the most certain first, and what to run next."""
    rules = (_larger_than_the_card, _steps_stay_alive, _in_pieces, _first_optimizer_step, _activations, _model_state)
    causes = tuple(cause for rule in rules for cause in rule(report))
    run_next = f"peaksight run --gpu NAME {report.script or 'SCRIPT'} ARGS"
    return replace(report, causes=causes, run_next=run_next)


def _larger_than_the_card(report: RecordingReport) -> Iterator[Cause]:
    """One request that an empty card could not serve."""
    oom, usable = report.oom, report.gpu.usable_bytes
    if oom is not None and usable is not None and oom.requested_bytes > usable:
        yield Cause(
            kind="single-huge-tensor",
            title="One tensor alone is larger than all that PyTorch could have",
            confidence=Confidence.CERTAIN,
            evidence=(f"{format_bytes(oom.requested_bytes)} asked, {format_bytes(usable)} reserved and free together",),
            try_first=f"Look at the shapes at {oom.at or 'the failing line'}: a dimension may be wrong.",
        )


def _steps_stay_alive(report: RecordingReport) -> Iterator[Cause]:
    """What a forward made in earlier steps: of one, outputs that are not let go in time; of several, a leak."""
    now = report.oom or report.peak
    kept = [holder for holder in _live(report) if _is_of_earlier_step(holder, now.step)]
    steps = {holder.step for holder in kept}
    num_bytes = sum(holder.bytes for holder in kept)
    if num_bytes < _NOTABLE * now.allocated_bytes:
        return
    if len(steps) > 1:
        yield Cause(
            kind="memory-grows-over-steps",
            title=f"Steps leave memory behind: {format_bytes(num_bytes)} of {len(steps)} earlier steps are alive",
            confidence=Confidence.LIKELY,
            evidence=_largest(kept),
            try_first="Keep no tensor of the card over steps: loss.item() or outputs.detach().cpu(), not the tensor.",
        )
    else:
        yield Cause(
            kind="varying-sizes-or-two-steps-alive",
            title=f"Outputs of the last step are alive in this one: {format_bytes(num_bytes)}",
            confidence=Confidence.LIKELY,
            evidence=_largest(kept),
            try_first="del outputs and loss before the next forward.",
        )


def _is_of_earlier_step(holder: Holder, step: int) -> bool:
    return holder.category is Category.ACTIVATION and holder.phase is Phase.FORWARD and 0 < holder.step < step


def _in_pieces(report: RecordingReport) -> Iterator[Cause]:
    """Enough was reserved and not used."""
    found = report.fragmentation
    if report.oom is None or found.unused_bytes < report.oom.requested_bytes:
        return
    is_expandable = _EXPANDABLE in report.allocator_settings
    pins = [
        f"{format_bytes(pin.alone_bytes)} are kept by {format_bytes(pin.held_bytes)} of {_words(pin.source)}"
        for pin in found.pins[:_NUM_LINES]
        if pin.alone_bytes
    ]
    yield Cause(
        kind="fragmentation",
        title="Reserved memory is in pieces: enough of it is not used, and no piece is large enough",
        confidence=Confidence.CERTAIN,
        evidence=(
            f"{format_bytes(found.unused_bytes)} of {format_bytes(found.reserved_bytes)} are not used, the largest "
            f"piece has {format_bytes(found.largest_free_bytes)}",
            *pins,
        ),
        try_first="Make what keeps the segments before the loop, or let go of it earlier."
        if is_expandable
        else f"PYTORCH_ALLOC_CONF={_EXPANDABLE} (PYTORCH_CUDA_ALLOC_CONF before 2.9).",
    )


def _words(line: str) -> str:
    return line if ":" in line else "blocks without a line"


def _first_optimizer_step(report: RecordingReport) -> Iterator[Cause]:
    oom = report.oom
    if oom is not None and oom.phase is Phase.OPTIMIZER and oom.step <= 1:
        state = sum(holder.bytes for holder in oom.live if holder.category is Category.OPTIMIZER_STATE)
        yield Cause(
            kind="optimizer-state-first-step",
            title="The first optimizer step makes the optimizer's state while all gradients are there",
            confidence=Confidence.LIKELY,
            evidence=(f"{format_bytes(state)} of state were made when it failed",),
            try_first="An optimizer with less state, gradients in a lower precision, or sharding (FSDP).",
        )


def _activations(report: RecordingReport) -> Iterator[Cause]:
    """Those of earlier steps are another cause."""
    step = (report.oom or report.peak).step
    activations = [holder for holder in _live(report) if holder.category is Category.ACTIVATION]
    held = [holder for holder in activations if not _is_of_earlier_step(holder, step)]
    inside = [holder for holder in report.live_in_libraries if holder.category is Category.ACTIVATION]
    yield from _dominating(
        report,
        held,
        *(f"{line} (at the peak)" for line in _largest(inside)),
        kind="activations-batch",
        title="Activations, which the forward keeps for the backward, hold most of what is allocated",
        try_first="A smaller batch or shorter sequences, or activation checkpointing around the lines named here.",
    )


def _model_state(report: RecordingReport) -> Iterator[Cause]:
    held = [holder for holder in _live(report) if holder.category in _MODEL_STATE]
    yield from _dominating(
        report,
        held,
        kind="model-state-too-big",
        title="Parameters, gradients and the optimizer's state hold most of what is allocated",
        try_first="A lower precision, an optimizer with less state, LoRA, or sharding (FSDP): the batch is not it.",
    )


def _dominating(report: RecordingReport, held: Sequence[Holder], *more: str, **told: str) -> Iterator[Cause]:
    """A cause where `held` is more than half of what was allocated at a failure; `more` is evidence too."""
    num_bytes = sum(holder.bytes for holder in held)
    if report.oom is not None and 2 * num_bytes > report.oom.allocated_bytes:
        share = f"{format_bytes(num_bytes)} of {format_bytes(report.oom.allocated_bytes)} allocated"
        yield Cause(confidence=Confidence.LIKELY, evidence=(share, *_largest(held), *more), **told)


def _live(report: RecordingReport) -> tuple[Holder, ...]:
    """At the failure, else at the peak."""
    return report.live_at_peak if report.oom is None else report.oom.live


def _largest(holders: Sequence[Holder]) -> tuple[str, ...]:
    """The lines that hold most, with what they hold."""
    held: dict[str, int] = {}
    for holder in holders:
        held[holder.source] = held.get(holder.source, 0) + holder.bytes
    notable = _NOTABLE * sum(held.values())
    largest = sorted(held.items(), key=lambda item: (-item[1], item[0]))[:_NUM_LINES]
    return tuple(f"{format_bytes(size)} at {source}" for source, size in largest if source and size >= notable)
