"""Causes that the size of the failing request shows."""

from collections.abc import Iterator

from peaksight.diagnosis.logs.case import Case, Finding, quoted
from peaksight.records import Cause, Confidence, Fit, Memory
from peaksight.units import GIB, format_bytes

CERTAIN, LIKELY, POSSIBLE = Confidence
_LARGE_SHARE = 0.4


def _said(fit: Fit) -> str:
    return f"{fit.what} {list(fit.shape)} x {fit.element_bytes} B = {format_bytes(fit.bytes)}, the size asked for"


def _fitting(case: Case, word: str) -> list[str]:
    return [_said(fit) for fit in case.fits if word in fit.what]


def logits(case: Case) -> Iterator[Finding]:
    """The request is the logits of the log's batch, sequence and vocabulary."""
    if said := _fitting(case, "logits"):
        cause = Cause(
            kind="fp32-logits-large-vocab",
            title="The logits [batch, sequence, vocab], their fp32 copy or their gradient",
            confidence=LIKELY,
            evidence=tuple(said),
            try_first="A chunked or fused cross-entropy; fewer or shorter sequences.",
        )
        yield Finding(cause, 62)


def attention(case: Case) -> Iterator[Finding]:
    """The request is one layer's attention scores."""
    if said := _fitting(case, "attention"):
        cause = Cause(
            kind="attention-scores-quadratic",
            title="Attention scores [batch, heads, tokens, tokens] are materialised",
            confidence=LIKELY,
            evidence=tuple(said),
            try_first="scaled_dot_product_attention or flash attention; a smaller resolution or sequence.",
        )
        yield Finding(cause, 61)


def square(case: Case) -> Iterator[Finding]:
    """The request is an n x n matrix of a size that the text names."""
    said = _fitting(case, "square")
    if said:
        clue = case.clue("linalg")
        cause = Cause(
            kind="linalg-workspace" if clue else "single-huge-tensor",
            title="An n x n matrix: a factorization with full matrices, or all pairs of n things",
            confidence=LIKELY,
            evidence=(*said, *([quoted(clue)] if clue else [])),
            try_first="full_matrices=False for svd; work in pieces for pairs.",
        )
        yield Finding(cause, 66)


def single_huge_tensor(case: Case) -> Iterator[Finding]:
    """One request that is a large part of the card, or more than all of it."""
    message = case.message
    if message is None or message.requested_bytes is None or message.memory is not Memory.DEVICE:
        return
    asked = message.requested_bytes
    whole = message.capacity_bytes or message.limit_bytes
    if message.dialect.startswith(("xla", "bfc")):
        return
    if whole is None and asked < 40 * GIB and not message.shape:
        return
    if whole is not None and asked < _LARGE_SHARE * whole:
        return
    share = f"{asked / whole:.1f} times the card" if whole else "one request"
    shape = [f"shape {message.shape}"] if message.shape else []
    is_optimizer = case.clue("optimizer") is not None
    yield Finding(
        Cause(
            kind="single-huge-tensor",
            title="One tensor asks for a large part of the card, or for more than all of it",
            confidence=POSSIBLE if is_optimizer else LIKELY,
            evidence=(f"{format_bytes(asked)} in one request: {share}", *shape),
            try_first="Find the tensor at the failing line (a repeat, an expand, all pairs, an n x n matrix) and "
            "make it in pieces.",
        ),
        47,
    )


def convolution_workspace(case: Case) -> Iterator[Finding]:
    """A convolution asks for far more than any tensor of it: cuDNN's workspace."""
    message = case.message
    if message is None or message.requested_bytes is None or message.memory is not Memory.DEVICE:
        return
    clue = case.clue("convolution")
    capacity, allocated = message.capacity_bytes, message.allocated_bytes
    is_large = capacity is not None and message.requested_bytes > _LARGE_SHARE * capacity
    if clue is None and not (is_large and allocated and message.dialect.startswith("torch")):
        return
    if clue is not None and not is_large:
        return
    multiple = message.requested_bytes / allocated if allocated else 0
    yield Finding(
        Cause(
            kind="conv-workspace",
            title="cuDNN chose a convolution algorithm with a huge workspace",
            confidence=LIKELY if clue else POSSIBLE,
            evidence=(
                f"{format_bytes(message.requested_bytes)} in one request, {multiple:.1f} times all that is allocated",
                *([quoted(clue)] if clue else []),
            ),
            try_first="torch.backends.cudnn.benchmark = False or deterministic = True, another layout or a newer "
            "cuDNN.",
        ),
        58 if clue else 40,
    )


def optimizer_slot(case: Case) -> Iterator[Finding]:
    """A tensor that an optimizer makes for a weight, by the name of the node that makes it."""
    message = case.message
    if message is None or not message.shape or case.clue("optimizer") is None:
        return
    clue = case.clue("optimizer")
    cause = Cause(
        kind="optimizer-state-first-step",
        title="The optimizer's state for a large weight: Adam keeps two values for each",
        confidence=LIKELY,
        evidence=(f"shape {message.shape}", *([quoted(clue)] if clue else [])),
        try_first="A smaller vocabulary, a factored optimizer, or sparse updates for the embedding.",
    )
    yield Finding(cause, 63)


RULES = (logits, attention, square, single_huge_tensor, convolution_workspace, optimizer_slot)
