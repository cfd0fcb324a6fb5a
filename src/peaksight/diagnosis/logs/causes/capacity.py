"""Causes that the figures of one message show: who fills the card, and what kind of request failed."""

from collections.abc import Iterator

from peaksight.diagnosis.logs.accounts import USUAL_OUTSIDE_BYTES
from peaksight.diagnosis.logs.arithmetic import is_plain_shortage
from peaksight.diagnosis.logs.case import Case, Finding
from peaksight.records import Cause, Confidence, Memory, Phase
from peaksight.units import MIB, format_bytes

CERTAIN, LIKELY, POSSIBLE = Confidence

# A request of which nothing real could be: 64 cards, or what PyTorch itself calls more than an exabyte.
_ABSURD_CARDS = 64
_FULL_SHARE = 0.85
# Phases in which a batch's activations are gone, or not yet there.
_NO_ACTIVATIONS = {Phase.INIT, Phase.OPTIMIZER, Phase.SAVE}


def absurd_size(case: Case) -> Iterator[Finding]:
    """A size that no tensor has: a negative or uninitialised number became one."""
    message = case.message
    if message is None:
        return
    asked, capacity = message.requested_bytes, message.capacity_bytes
    is_absurd = message.dialect == "torch-more-than-1EB" or (asked is not None and asked >= 1 << 50)
    is_huge = asked is not None and capacity is not None and asked > _ABSURD_CARDS * capacity
    if is_absurd or is_huge:
        said = "more than 1 EB" if asked is None else format_bytes(asked)
        yield Finding(
            Cause(
                kind="absurd-size-bug",
                title="The size is garbage, not memory: a negative, overflown or uninitialised number became a shape",
                confidence=CERTAIN if is_absurd else POSSIBLE,
                evidence=(f"asked for {said}",),
                try_first="Print the shapes at the failing line; look for an earlier error above, such as a timeout "
                "or a failed assertion.",
            ),
            60,
        )


def memory_cap(case: Case) -> Iterator[Finding]:
    """A limit that somebody set is reached, not the card's."""
    message = case.message
    if message is None or message.limit_bytes is None or message.memory is not Memory.DEVICE:
        return
    if message.dialect.startswith(("mps", "bfc", "cupy", "xla", "vllm")) or message.capacity_bytes is None:
        return
    yield Finding(
        Cause(
            kind="memory-fraction-cap",
            title="A cap on this process is reached, not the card's size",
            confidence=CERTAIN,
            evidence=(
                f"{format_bytes(message.limit_bytes)} allowed of {format_bytes(message.capacity_bytes)}; "
                f"{format_bytes(message.free_bytes or 0)} are free",
            ),
            try_first="Raise or remove torch.cuda.set_per_process_memory_fraction (per_process_memory_fraction in "
            "the allocator's settings).",
        ),
        70,
    )


def unified_memory(case: Case) -> Iterator[Finding]:
    """MPS: the memory is shared with everything else on the machine."""
    message = case.message
    other = message.figure("other") if message else None
    if message is None or not message.dialect.startswith("mps") or other is None or not other.bytes:
        return
    held, limit = message.allocated_bytes or 0, message.limit_bytes or 0
    share = other.bytes / max(held + other.bytes, 1)
    yield Finding(
        Cause(
            kind="mps-other-allocations" if share > 0.5 else "mps-limit",
            title="Most of the unified memory in use is not this process's tensors" if share > 0.5
            else "This process fills what macOS lets the GPU use of the unified memory",
            confidence=LIKELY,
            evidence=(f"{format_bytes(held)} in tensors, {format_bytes(other.bytes)} others, {format_bytes(limit)} "
            f"allowed",),
            try_first="Close other programs and use a smaller batch; PYTORCH_MPS_HIGH_WATERMARK_RATIO has to be set "
            "before torch is imported."
        ),
        55,
    )  # fmt: skip


def other_process(case: Case) -> Iterator[Finding]:
    """Another process, or many, hold so much of the card that the request would have fitted without them."""
    message, account = case.message, case.account
    if message is None or account is None or message.requested_bytes is None or not is_plain_shortage(message):
        return
    missing = message.requested_bytes - (message.free_bytes or 0)
    unexplained = account.unexplained_bytes or 0
    hidden = unexplained if account.own_bytes is not None else max(unexplained - USUAL_OUTSIDE_BYTES, 0)
    held = account.others_bytes + hidden
    capacity = message.capacity_bytes or 0
    if held < max(missing, 256 * MIB) or capacity == 0:
        return
    named = [f"process {process.pid} has {process.printed}" for process in account.others]
    rest = (
        [f"{format_bytes(hidden)} are held by processes that the message does not name"] if hidden > 256 * MIB else []
    )
    is_large = held > 0.1 * capacity and held > 2 * (message.reserved_bytes or 0) / 10
    yield Finding(
        Cause(
            kind="other-process-holds-card",
            title="Other processes hold part of the card, without which this request fits",
            confidence=LIKELY if is_large else POSSIBLE,
            evidence=(*named, *rest),
            try_first="nvidia-smi: end what is left over from earlier runs, or choose a free card "
            "(CUDA_VISIBLE_DEVICES).",
        ),
        65 if is_large else 28,
    )


def free_but_refused(case: Case) -> Iterator[Finding]:
    """More is free than was asked for: no shortage that a smaller batch would cure."""
    message = case.message
    if message is None or message.requested_bytes is None or message.free_bytes is None:
        return
    if is_plain_shortage(message) or message.limit_bytes is not None:
        return
    sentinel = any(figure.bytes is None for figure in message.figures)
    windows = bool(case.clue("wsl", "windows")) or sentinel
    yield Finding(
        Cause(
            kind="sentinel-values" if sentinel else "free-memory-refused",
            title="The driver refused memory that is free: WSL2 or the driver caps one allocation or the commit, "
            "another process "
            "took it in between, or a container or slice sees the whole card's numbers",
            confidence=LIKELY,
            evidence=(
                f"{format_bytes(message.free_bytes)} free, {format_bytes(message.requested_bytes)} asked",
                *(["2^64 in place of a size: NVML cannot see this process, as under WSL2"] if sentinel else []),
                *([f"the log is from Windows or WSL: {clue.quote}"] if (clue := case.clue("wsl", "windows")) else []),
            ),
            try_first="Not a smaller batch: check the driver, WSL2's memory limit and the system's commit limit, and "
            "which process shares the card."
            if windows
            else "Not a smaller batch: look at nvidia-smi while it runs, at limits of the container or slice, and at "
            "the driver.",
        ),
        64,
    )


def this_job_fills_card(case: Case) -> Iterator[Finding]:
    """PyTorch's tensors fill the card, and the failing request is the last straw."""
    message, account = case.message, case.account
    if message is None or account is None or message.capacity_bytes is None or message.allocated_bytes is None:
        return
    share = message.allocated_bytes / max(message.capacity_bytes, 1)
    if share < _FULL_SHARE:
        return
    own = [f"process {account.own_as} is this one, under its pid outside the container"] if account.own_as else []
    small = message.requested_bytes is not None and message.requested_bytes < 0.02 * message.capacity_bytes
    straw = ["the failing request is small: the line that makes it is not where the memory went"] if small else []
    yield Finding(
        Cause(
            kind="own-process-shown-as-other" if own else "card-full-of-own-tensors",
            title="This job's own tensors fill the card",
            confidence=LIKELY if own else POSSIBLE,
            evidence=(
                f"{format_bytes(message.allocated_bytes)} of {format_bytes(message.capacity_bytes)} are in tensors",
                *own,
                *straw,
            ),
            try_first="See what is alive at the peak: peaksight run. Smaller batch or activation checkpointing if "
            "that is activations.",
        ),
        42,
    )


def model_and_activations(case: Case) -> Iterator[Finding]:
    """The everyday case, where nothing more special is known: activations grow with the batch."""
    message = case.message
    if message is None or message.memory is not Memory.DEVICE or message.phase in _NO_ACTIVATIONS:
        return
    if message.phase in {Phase.FORWARD, Phase.BACKWARD} or message.allocated_bytes is not None or message.shape:
        yield Finding(
            Cause(
                kind="activations-batch",
                title="Activations of a batch that is too large for what the model leaves of the card",
                confidence=POSSIBLE,
                evidence=tuple([f"it failed in the {message.phase}"] if message.phase else []),
                try_first="Halve the micro-batch and double the accumulation; activation checkpointing.",
            ),
            10,
        )


def pool_of_bfc(case: Case) -> Iterator[Finding]:
    """TensorFlow's pool is full of tensors: the one that failed is the last straw."""
    for stats in case.of_dialect("bfc-statistics")[:1]:
        limit, in_use = stats.limit_bytes or 0, stats.allocated_bytes or 0
        if case.message is not None and limit and in_use >= _FULL_SHARE * limit:
            yield Finding(
                Cause(
                    kind="card-full-of-own-tensors",
                    title="This job's own tensors fill the pool of TensorFlow's allocator",
                    confidence=POSSIBLE,
                    evidence=(f"{format_bytes(in_use)} of {format_bytes(limit)} are in use",),
                    try_first="A smaller batch or model, mixed precision, or gradient checkpointing "
                    "(tf.recompute_grad).",
                ),
                42,
            )


RULES = (
    pool_of_bfc,
    absurd_size,
    memory_cap,
    unified_memory,
    other_process,
    free_but_refused,
    this_job_fills_card,
    model_and_activations,
)
