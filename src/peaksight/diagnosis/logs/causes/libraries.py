"""Errors of CUDA's libraries that are out of memory in disguise, and errors without numbers."""

from collections.abc import Iterator

from peaksight.diagnosis.logs.case import Case, Finding, quoted
from peaksight.records import Cause, Confidence, Memory, Phase
from peaksight.units import format_bytes

CERTAIN, LIKELY, POSSIBLE = Confidence


def nccl(case: Case) -> Iterator[Finding]:
    """NCCL takes its buffers outside PyTorch's pool, which left no room."""
    found = [message for message in case.of_dialect("nccl") if message.memory is Memory.DEVICE]
    if not found:
        return
    sizes = [format_bytes(message.requested_bytes) for message in found if message.requested_bytes]
    cause = Cause(
        kind="nccl-alloc-outside-pool",
        title="NCCL found no memory for its buffers, which it takes outside PyTorch's cache",
        confidence=LIKELY,
        evidence=(f"line {found[0].line}: {found[0].text[:120]}", *(f"it asked for {size}" for size in sizes[:2])),
        try_first="Leave it room: torch.cuda.set_per_process_memory_fraction(0.9) or XLA_PYTHON_CLIENT_MEM_FRACTION, "
        "make communicators early, empty_cache before.",
    )
    yield Finding(cause, 70)


def nccl_unclear(case: Case) -> Iterator[Finding]:
    """An NCCL error that does not say why: memory is one of several reasons."""
    found = case.of_dialect("nccl-unclear")
    if not found or case.of_dialect("nccl") != found:
        return
    cause = Cause(
        kind="nccl-alloc-outside-pool",
        title="NCCL failed for a reason that it does not print; no memory for its buffers is a common one",
        confidence=POSSIBLE,
        evidence=(f"line {found[0].line}: {found[0].text[:120]}",),
        try_first="Run again with NCCL_DEBUG=WARN, which prints the reason.",
    )
    yield Finding(cause, 20)


def library_handle(case: Case) -> Iterator[Finding]:
    """cuBLAS or cuDNN cannot make its handle or workspace, which needs memory outside PyTorch's cache."""
    message = case.message
    if message is None or message.dialect not in {"cublas", "cudnn"}:
        return
    said = "ALLOC_FAILED" in message.text or "resource allocation" in message.text
    bug = case.clue("index-error")
    cause = Cause(
        kind="library-out-of-memory",
        title=f"{message.framework} found no memory for its handle or workspace, outside PyTorch's cache: out of "
        f"memory in disguise",
        confidence=LIKELY if said or not bug else POSSIBLE,
        evidence=(f"line {message.line}: {message.text[:140]}", *([f"but also {quoted(bug)}"] if bug else [])),
        try_first="Leave a few hundred MiB: a smaller batch, or torch.cuda.set_per_process_memory_fraction(0.95); "
        "call torch.cuda.empty_cache() before the first use.",
    )
    yield Finding(cause, 68)


def index_error_in_disguise(case: Case) -> Iterator[Finding]:
    """An index out of range on the device breaks the context, and the next library call gets the blame."""
    message, clue = case.message, case.clue("index-error")
    if message is None or clue is None or message.memory is Memory.HOST:
        return
    cause = Cause(
        kind="device-assert-not-memory",
        title="An index out of range broke the CUDA context before: not a lack of memory",
        confidence=LIKELY,
        evidence=(quoted(clue),),
        try_first="Run with CUDA_LAUNCH_BLOCKING=1, and compare labels and token ids with the sizes of the model.",
    )
    yield Finding(cause, 72)


def pinned_memory(case: Case) -> Iterator[Finding]:
    """Page-locked host memory ran out."""
    found = case.of_dialect("pinned-host-memory")
    if found:
        cause = Cause(
            kind="pinned-host-memory",
            title="The host's memory could not be page-locked: it is host memory that ran out, not the card's",
            confidence=LIKELY,
            evidence=(f"line {found[0].line}: {found[0].text[:120]}",),
            try_first="pin_memory=False, smaller offload buffers; raise the limit of locked memory (ulimit -l).",
        )
        yield Finding(cause, 74)


def bare_error(case: Case) -> Iterator[Finding]:
    """`CUDA error: out of memory` without numbers: the card's memory, pinned host memory, or an older error."""
    message = case.message
    if message is None or message.dialect not in {"cuda-error-without-numbers", "torch-0.4-THC"}:
        return
    is_driver = "driver" in message.text
    is_early = message.phase is Phase.INIT
    evidence = (f"line {message.line}: {message.text[:100]}", "no figures: not the caching allocator's message")
    yield Finding(
        Cause(
            kind="driver-refused-mapping" if is_driver else "pinned-host-memory",
            title="Pinned host memory could not be locked, and the error shows at a later call"
            if not is_driver
            else "The driver refused to map memory (expandable segments, or memory outside the allocator)",
            confidence=POSSIBLE,
            evidence=evidence,
            try_first="Try once without pinned memory (pin_memory=False) and offloading, with "
            "CUDA_LAUNCH_BLOCKING=1, before a smaller batch.",
        ),
        22,
    )
    yield Finding(
        Cause(
            kind="card-held-by-others",
            title="The card is full or held by another process before this one starts, so that not even a context fits",
            confidence=POSSIBLE,
            evidence=evidence,
            try_first="nvidia-smi before the start.",
        ),
        24 if is_early else 21,
    )


def taken_at_start(case: Case) -> Iterator[Finding]:
    """TensorFlow cannot take the card at its start: somebody else has it."""
    message = case.message
    if message is None or message.dialect != "tensorflow-driver":
        return
    cause = Cause(
        kind="other-process-holds-card",
        title="The card is taken already when TensorFlow or JAX asks for it: by another process, or a second framework",
        confidence=LIKELY if message.requested_bytes else POSSIBLE,
        evidence=(f"line {message.line}: {message.text[:120]}",),
        try_first="nvidia-smi; set_memory_growth or XLA_PYTHON_CLIENT_PREALLOCATE=false in the other one.",
    )
    yield Finding(cause, 52)


def serving_engine(case: Case) -> Iterator[Finding]:
    """vLLM finds too little memory for its KV cache, which it takes up front."""
    found = case.of_dialect("vllm")
    if found:
        cause = Cause(
            kind="serving-engine-preallocates",
            title="The inference engine takes its KV cache up front, and what is left of the card is too little for it",
            confidence=LIKELY,
            evidence=(f"line {found[0].line}: {found[0].text[:120]}",),
            try_first="Free the card first, lower max_model_len, or set gpu_memory_utilization to what is really free.",
        )
        yield Finding(cause, 56)


def kernel_resources(case: Case) -> Iterator[Finding]:
    """A kernel asks for more shared memory than a multiprocessor has: no lack of GPU memory."""
    found = case.of_dialect("triton-resources")
    if found:
        asked, limit = found[0].requested_bytes, found[0].limit_bytes
        cause = Cause(
            kind="kernel-shared-memory",
            title="A Triton kernel needs more on-chip memory than this card has: not a lack of GPU memory",
            confidence=CERTAIN,
            evidence=(f"{asked} bytes required, {limit} available",),
            try_first="Smaller block sizes or num_stages; a kernel made for this card.",
        )
        yield Finding(cause, 90)


def allocator_pressure(case: Case) -> Iterator[Finding]:
    """DeepSpeed warns that the allocator gives its cache back: the step before out of memory."""
    found = case.of_dialect("deepspeed-cache-flushes")
    if found and not case.failures:
        cause = Cause(
            kind="near-oom-warning",
            title="Nearly out of memory: the allocator had to give its cache back and start anew, which is slow",
            confidence=CERTAIN,
            evidence=(f"line {found[0].line}: {found[0].text[:120]}",),
            try_first="Smaller buckets and live parameters (stage3_max_live_parameters), or empty_cache on all ranks "
            "at one step.",
        )
        yield Finding(cause, 50)


def peak_over_current(case: Case) -> Iterator[Finding]:
    """A usage line whose peak is far above what stays: a transient is what fills the card."""
    for message in case.of_dialect("deepspeed-usage")[:1]:
        peak = message.figure("max_allocated")
        if not case.failures and peak and peak.bytes and message.allocated_bytes is not None:
            cause = Cause(
                kind="near-oom-warning",
                title="The peak lies far above what stays allocated: a transient fills the card",
                confidence=POSSIBLE,
                evidence=(f"{format_bytes(message.allocated_bytes)} stay, {format_bytes(peak.bytes)} at the peak",),
                try_first="Smaller live parameters and buckets; see the peak with peaksight run.",
            )
            yield Finding(cause, 30)


RULES = (
    nccl,
    nccl_unclear,
    library_handle,
    index_error_in_disguise,
    pinned_memory,
    bare_error,
    taken_at_start,
    serving_engine,
    kernel_resources,
    allocator_pressure,
    peak_over_current,
)
