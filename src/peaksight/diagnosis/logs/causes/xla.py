"""XLA and JAX: one program asks for all its temporaries at once, so the figures are those of a compiled step."""

import re
from collections.abc import Iterator

from peaksight.diagnosis.logs.case import Case, Finding, quoted
from peaksight.records import Cause, Confidence, OomMessage
from peaksight.units import format_bytes

CERTAIN, LIKELY, POSSIBLE = Confidence


def _is_xla(case: Case) -> bool:
    return bool(case.of_dialect("xla")) or any("XLA" in m.framework for m in case.failures)


def _requested(case: Case) -> int:
    return max((m.requested_bytes or 0 for m in case.of_dialect("xla", "bfc-allocator")), default=0)


def program_temporaries(case: Case) -> Iterator[Finding]:
    """The compiler says how much it needs after all rematerialisation: activations of the whole program."""
    for message in case.of_dialect("xla-rematerialization")[:1]:
        needed, originally, limit = (message.figure(name) for name in ("needed", "originally", "limit"))
        if not (needed and originally and limit and needed.bytes and originally.bytes and limit.bytes):
            continue
        saved = 1 - needed.bytes / originally.bytes
        cause = Cause(
            kind="activations-no-remat",
            title="The activations of the whole step, which the compiler could not rematerialise below the limit",
            confidence=LIKELY,
            evidence=(
                f"{format_bytes(needed.bytes)} needed of {format_bytes(limit.bytes)}: "
                f"{needed.bytes / limit.bytes:.1f} times",
                f"the compiler saved {100 * saved:.0f} % of {format_bytes(originally.bytes)}",
                f"a forecast: {format_bytes(needed.bytes)} is what the program will take when it runs; tracing and "
                "compiling it takes host memory",
            ),
            try_first="jax.checkpoint around each layer or scan body, with a policy; fewer steps, a smaller batch or "
            "mesh.",
        )
        yield Finding(cause, 56)


def scan_residuals(case: Case) -> Iterator[Finding]:
    """A scan or loop under grad keeps what every iteration saved; nothing could be rematerialised."""
    clue = case.clue("scan")
    unsaved = any(
        needed and originally and needed.bytes and needed.bytes == originally.bytes
        for m in case.of_dialect("xla-rematerialization")
        for needed, originally in [(m.figure("needed"), m.figure("originally"))]
    )
    if not _is_xla(case) or not (clue or unsaved):
        return
    cause = Cause(
        kind="jax-scan-residuals",
        title="A scan or unrolled loop stacks what each iteration keeps for the backward; the compiler cannot "
        "rematerialise across it",
        confidence=LIKELY if clue else POSSIBLE,
        evidence=tuple(
            [quoted(clue)] if clue else ["rematerialisation saved nothing: one block the compiler cannot split"]
        ),
        try_first="jax.checkpoint around the body: scan(remat(f)); nested scans for long loops.",
    )
    yield Finding(cause, 57)


def dropout_not_rematerialized(case: Case) -> Iterator[Finding]:
    """Random bits of dropout among the peak buffers: they are kept although blocks are rematerialised."""
    buffers = [m for m in case.of_dialect("xla-peak-buffer") if m.shape.startswith(("u32", "u8", "pred"))]
    clue = case.clue("dropout-bits")
    if buffers and clue:
        cause = Cause(
            kind="checkpoint-ineffective",
            title="The random bits of dropout are kept for the backward, not rematerialised",
            confidence=LIKELY,
            evidence=(f"peak buffer {buffers[0].shape}: {format_bytes(_size(buffers[0]))}", quoted(clue)),
            try_first="Dropout off, or its key folded in anew inside the checkpointed block.",
        )
        yield Finding(cause, 62)


def _size(message: OomMessage) -> int:
    figure = message.figure("buffer")
    return figure.bytes or 0 if figure else 0


def innocent_allocation(case: Case) -> Iterator[Finding]:
    """The failing program is tiny: what fills the memory was there before."""
    for message in case.of_dialect("xla-buffer-assignment"):
        program = message.figure("program")
        if program and program.bytes is not None and program.bytes < 1 << 30 and _requested(case) < 1 << 30:
            cause = Cause(
                kind="innocent-last-allocation",
                title="The failing program is small: arrays that live outside it, or another process, fill the memory",
                confidence=LIKELY,
                evidence=(
                    f"the whole program needs {format_bytes(program.bytes)}, it asked for "
                    f"{format_bytes(_requested(case))}",
                ),
                try_first="jax.live_arrays(), donate_argnums, and nvidia-smi for others; "
                "XLA_PYTHON_CLIENT_PREALLOCATE=false to see the true use.",
            )
            yield Finding(cause, 66)
            return


def activations_of_buffers(case: Case) -> Iterator[Finding]:
    """Peak buffers of the forward and its transpose: activations."""
    buffers = [m for m in case.of_dialect("xla-peak-buffer") if m.shape.startswith(("f", "bf"))]
    clue = case.clue("gradient-program")
    if buffers and clue:
        cause = Cause(
            kind="activations-batch",
            title="Activations that the backward needs: they grow with the batch of each device",
            confidence=LIKELY,
            evidence=(f"peak buffer {buffers[0].shape}: {format_bytes(_size(buffers[0]))}", quoted(clue)),
            try_first="A smaller batch for each device, bf16, or jax.checkpoint.",
        )
        yield Finding(cause, 54)


def attention_buffers(case: Case) -> Iterator[Finding]:
    """The largest buffer is made by attention, or is square in its last two sizes: scores of every pair of tokens."""
    buffers = sorted(case.of_dialect("xla-peak-buffer"), key=_size, reverse=True)
    if not buffers or not buffers[0].shape.startswith(("f", "bf")):
        return
    sizes = [int(size) for size in re.findall(r"\d{1,12}", buffers[0].shape.partition("[")[2])]
    is_square = len(sizes) >= 3 and sizes[-1] == sizes[-2] >= 512
    if is_square or re.search(r"attention|attn|softmax|hqk|bhqk", buffers[0].text):
        cause = Cause(
            kind="attention-scores-quadratic",
            title="Attention scores [.., tokens, tokens] are materialised",
            confidence=LIKELY if is_square else POSSIBLE,
            evidence=(f"largest buffer {buffers[0].shape}: {format_bytes(_size(buffers[0]))}",),
            try_first="Flash or chunked attention (jax.nn.dot_product_attention), a shorter sequence, remat.",
        )
        yield Finding(cause, 60)


def exceeds_hbm(case: Case) -> Iterator[Finding]:
    """The compiler found that a program never fits: far too much, or mostly arguments, is state; else temporaries."""
    for message in case.of_dialect("xla-tpu")[:1]:
        used, capacity = message.figure("used"), message.figure("capacity")
        if not (used and capacity and used.bytes and capacity.bytes):
            continue
        is_state = _is_mostly(message, "arguments") or (
            used.bytes > 1.5 * capacity.bytes and not _is_mostly(message, "temporaries")
        )
        evidence = f"{used.printed} used of {capacity.printed}: {used.bytes / capacity.bytes:.1f} times"
        yield Finding(_too_big(evidence, LIKELY if is_state else POSSIBLE), 58)
        yield Finding(_temporaries(evidence, POSSIBLE if is_state else LIKELY), 57)


def _is_mostly(message: OomMessage, name: str) -> bool:
    """Whether more than half of what is used is `name`."""
    part, used = message.figure(name), message.figure("used")
    return bool(part and used and 2 * (part.bytes or 0) > (used.bytes or 0))


def _too_big(evidence: str, confidence: Confidence) -> Cause:
    return Cause(
        kind="model-state-too-big",
        title="The program needs more than the device has: weights and optimizer state",
        confidence=confidence,
        evidence=(evidence,),
        try_first="Shard over more devices or a larger one; bf16 state, a factored optimizer.",
    )


def _temporaries(evidence: str, confidence: Confidence) -> Cause:
    return Cause(
        kind="activations-no-remat",
        title="The program needs more than the device has: temporaries, mostly activations",
        confidence=confidence,
        evidence=(evidence,),
        try_first="jax.checkpoint around layers, a smaller batch, bf16 activations.",
    )


def state_with_checkpoint(case: Case) -> Iterator[Finding]:
    """The program that failed makes the training state: what it is made from is its argument, and there all along."""
    clue = case.clue("jax-state-init")
    if not clue or not case.failures or not _is_xla(case):
        return
    ran = case.clue("xla-execution")
    cause = Cause(
        kind="jax-state-init",
        title="It failed where the training state is made: a checkpoint and the state made of it are there together",
        confidence=POSSIBLE,
        evidence=(quoted(clue), *([f"it failed as it ran, not as it was compiled: {quoted(ran)}"] if ran else ())),
        try_first="Cast frozen parameters on the host before the jitted init, donate the checkpoint, or make only the "
        "optimizer's state inside it.",
    )
    yield Finding(cause, 45)


def preallocated_pool(case: Case) -> Iterator[Finding]:
    """JAX takes three quarters of the card at its start; others then find nothing, or it finds others there."""
    clue = case.clue("preallocation", "other-process")
    if clue and (_is_xla(case) or any("TensorFlow" in m.framework for m in case.failures)):
        cause = Cause(
            kind="preallocation",
            title="JAX and TensorFlow take most of the card at their start, and leave nothing to others",
            confidence=POSSIBLE,
            evidence=(quoted(clue),),
            try_first="XLA_PYTHON_CLIENT_PREALLOCATE=false, or set_memory_growth in TensorFlow.",
        )
        yield Finding(cause, 40)


def whole_program(case: Case) -> Iterator[Finding]:
    """One request of many GiB by XLA is the temporaries of a whole program, not one array."""
    asked = _requested(case)
    if asked >= 1 << 30 and case.of_dialect("xla", "bfc-allocator"):
        cause = Cause(
            kind="activations-no-remat",
            title="One request for all temporaries of a compiled step: mostly activations for the backward",
            confidence=POSSIBLE,
            evidence=(f"{format_bytes(asked)} in one request",),
            try_first="jax.checkpoint around layers; a smaller batch; compiled.memory_analysis() says what it is.",
        )
        yield Finding(cause, 30)


RULES = (
    program_temporaries,
    scan_residuals,
    dropout_not_rematerialized,
    innocent_allocation,
    attention_buffers,
    activations_of_buffers,
    exceeds_hbm,
    state_with_checkpoint,
    preallocated_pool,
    whole_program,
)
