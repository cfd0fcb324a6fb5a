"""Causes that the moment of the failure shows: the first step or a late one, and the phase."""

from collections.abc import Iterator
from itertools import pairwise

from peaksight.diagnosis.logs.case import Case, Finding, quoted
from peaksight.records import Cause, Confidence, Memory, Phase
from peaksight.units import format_bytes

CERTAIN, LIKELY, POSSIBLE = Confidence
_LATE_STEPS = 50
# The first steps make state and fill caches: they grow in every run.
_WARM_UP_SAMPLES = 2
_FEW_SAMPLES = 6


def late_failure(case: Case) -> Iterator[Finding]:
    """It ran for many steps: something grows, or one batch is larger than the others."""
    message = case.message
    if message is None or message.step is None or message.step < _LATE_STEPS or message.memory is not Memory.DEVICE:
        return
    for kind, title, advice, weight in (
        ("sequence-length-outlier", "One batch is larger than those before it: a long sample or a large image",
         "Log the shapes of every batch; `peaksight run --worst-batch` shows what the longest costs.", 27),
        ("memory-grows-over-steps", "Memory grows from step to step: something keeps the tensors of earlier ones",
         "Print torch.cuda.memory_allocated() every step; .item() or detach() what is kept.", 26),
    ):  # fmt: skip
        cause = Cause(
            kind=kind,
            title=title,
            confidence=POSSIBLE,
            evidence=(f"it ran until step {message.step}, so an ordinary step fits",),
            try_first=advice,
        )
        yield Finding(cause, weight)


def growing_memory(case: Case) -> Iterator[Finding]:
    """The log prints memory with its steps, and it climbs all along."""
    samples = sorted(case.evidence.samples, key=lambda sample: sample.step)[_WARM_UP_SAMPLES:]
    if len(samples) < _FEW_SAMPLES or not case.is_device:
        return
    climbs = sum(later.bytes >= earlier.bytes for earlier, later in pairwise(samples))
    first, last = samples[0], samples[-1]
    middle = samples[len(samples) // 2]
    if climbs < 0.8 * (len(samples) - 1) or last.bytes < 1.1 * middle.bytes or middle.bytes < 1.05 * first.bytes:
        return
    cause = Cause(
        kind="memory-grows-over-steps",
        title="Memory grows from step to step: something keeps the tensors of earlier ones",
        confidence=LIKELY,
        evidence=(
            f"{format_bytes(first.bytes)} at step {first.step}, {format_bytes(middle.bytes)} at step {middle.step}, "
            f"{format_bytes(last.bytes)} at step {last.step}",
        ),
        try_first="Look for lists, sums and attributes that keep tensors with their graph; .item() or detach() them.",
    )
    yield Finding(cause, 64)


def evaluation_failure(case: Case) -> Iterator[Finding]:
    """It failed in the evaluation: its batch, its outputs, or graphs that nobody needs."""
    clue = case.clue("evaluates")
    if case.phase is not Phase.EVALUATION and (clue is None or case.message is None):
        return
    if not case.is_device or case.is_prose:
        return
    cause = Cause(
        kind="eval-predictions-accumulated",
        title="The evaluation needs more than a training step: a larger batch, outputs kept for all batches, or no "
        "torch.no_grad()",
        confidence=POSSIBLE,
        evidence=tuple([quoted(clue)] if clue else ["it failed inside the evaluation"]),
        try_first="A smaller eval batch, eval_accumulation_steps, torch.no_grad(); del the last training step's "
        "outputs before.",
    )
    yield Finding(cause, 29)


def optimizer_phase(case: Case) -> Iterator[Finding]:
    """The stack ends in the optimizer: its state is made there in the first step."""
    message = case.message
    if message is None or message.phase is not Phase.OPTIMIZER or message.memory is not Memory.DEVICE:
        return
    first = message.step is None or message.step <= 1
    cause = Cause(
        kind="optimizer-state-first-step" if first else "optimizer-foreach-intermediates",
        title="The optimizer makes its state in its first step: Adam two values a parameter"
        if first
        else "The foreach optimizer makes a temporary as large as the model in every step",
        confidence=LIKELY,
        evidence=("the stack ends in the optimizer's step",),
        try_first="fused=True, an 8-bit or factored optimizer, ZeRO or FSDP, LoRA; less batch does not help here.",
    )
    yield Finding(cause, 61)


def loading_phase(case: Case) -> Iterator[Finding]:
    """It failed before any step, while the model was loaded."""
    message = case.message
    if message is None or message.phase is not Phase.INIT or message.memory is not Memory.DEVICE:
        return
    cause = Cause(
        kind="model-state-too-big",
        title="The model itself does not fit: it fails while it is loaded or moved to the card",
        confidence=LIKELY,
        evidence=(f"the stack ends in loading{f' at {message.at}' if message.at else ''}",),
        try_first="Load in bf16 or 4 bit, shard it, or LoRA: no batch size helps here.",
    )
    yield Finding(cause, 39)


def saving_phase(case: Case) -> Iterator[Finding]:
    """It failed while a checkpoint was written."""
    message = case.message
    if message is None or message.phase is not Phase.SAVE or message.memory is not Memory.DEVICE:
        return
    cause = Cause(
        kind="save-time-state-dict",
        title="Saving gathers or copies the weights on the card",
        confidence=LIKELY,
        evidence=(f"the stack ends in saving{f' at {message.at}' if message.at else ''}",),
        try_first="Gather the state to the CPU (offload_to_cpu, rank0_only), save sharded, or only the adapters.",
    )
    yield Finding(cause, 49)


def private_pools(case: Case) -> Iterator[Finding]:
    """CUDA graphs hold a good part of what is allocated in pools of their own."""
    message = case.message
    pools = message.figure("private_pools") if message else None
    if message is None or pools is None or not pools.bytes or not message.allocated_bytes:
        return
    share = pools.bytes / message.allocated_bytes
    cause = Cause(
        kind="compile-or-cuda-graph-pools",
        title="CUDA graphs keep private pools, one for each captured shape",
        confidence=LIKELY if share > 0.2 else POSSIBLE,
        evidence=(f"{format_bytes(pools.bytes)} in private pools, {100 * share:.0f} % of what is allocated",),
        try_first="Fewer captured shapes (padding), mode='default' instead of 'reduce-overhead'.",
    )
    yield Finding(cause, 43)


RULES = (saving_phase, private_pools, growing_memory, late_failure, evaluation_failure, optimizer_phase, loading_phase)
