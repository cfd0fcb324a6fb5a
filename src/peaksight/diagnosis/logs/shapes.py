"""Which tensors have exactly the size that was asked for."""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from math import prod
from typing import Any

from peaksight.records import Fact, Fit, LogEvidence, OomMessage
from peaksight.units import MIB

_WIDTHS = (4, 2, 8, 1)
_HALF_OR_SINGLE = (2, 4)
# Below, the printed size is that of a segment of 2 or 20 MiB: any small tensor fits it.
MIN_DECIDABLE_BYTES = 20 * MIB + 1
_PATCHES = (1, 8, 14, 16)
_MAX_FITS = 6


@dataclass(frozen=True, slots=True)
class Candidate:
    """A tensor that the job may make: `what` it is, and its sizes."""

    what: str
    shape: tuple[int, ...]
    widths: tuple[int, ...] = _HALF_OR_SINGLE


def fits(evidence: LogEvidence, message: OomMessage) -> tuple[Fit, ...]:
    """The candidates that the requested size fits; none where it is too small or too coarse to decide anything."""
    requested = message.requested_bytes
    if requested is None or requested < MIN_DECIDABLE_BYTES:
        return ()
    found: dict[tuple[Any, ...], Fit] = {}
    for candidate in candidates(evidence):
        for width in candidate.widths:
            num_bytes = prod(candidate.shape) * width
            if _matches(message, num_bytes):
                fit = Fit(what=candidate.what, shape=candidate.shape, element_bytes=width, bytes=num_bytes)
                found.setdefault((candidate.what, candidate.shape), fit)
    return tuple(found.values())[:_MAX_FITS]


def _matches(message: OomMessage, num_bytes: int) -> bool:
    """Whether an allocator asked for `num_bytes` prints the requested size."""
    figure = message.figure("requested")
    if figure is None or figure.bytes is None:
        return False
    if message.dialect.startswith("torch"):
        rounded = -(-num_bytes // (2 * MIB)) * 2 * MIB
        return abs(rounded - figure.bytes) <= figure.margin_bytes
    return abs(num_bytes - figure.bytes) <= max(figure.margin_bytes, 256)


def candidates(evidence: LogEvidence) -> Iterator[Candidate]:
    """Tensors made of the sizes that the log names; those written out first."""
    for shape in evidence.shapes:
        yield Candidate("a tensor written in the text", shape, _WIDTHS)
    yield from _square(evidence.shapes)
    yield from _of_facts(evidence.facts)


def _square(shapes: Iterable[tuple[int, ...]]) -> Iterator[Candidate]:
    """The d x d matrix of a factorization, for every large size."""
    for size in sorted({size for shape in shapes for size in shape if size >= 4096}):
        yield Candidate("a square matrix of one of the sizes", (size, size), _WIDTHS)


def values(facts: Iterable[Fact], *names: str) -> list[int]:
    """The values that the log gives for one of `names`, each once."""
    return list(dict.fromkeys(fact.value for fact in facts if fact.name in names and fact.value > 0))


def _of_facts(facts: tuple[Fact, ...]) -> Iterator[Candidate]:
    batches = values(facts, "batch") or [1]
    sequences = values(facts, "sequence")
    vocabs = values(facts, "vocab", "model_vocab")
    heads = values(facts, "heads", "model_heads")
    for batch in batches:
        for sequence in sequences:
            for length in (sequence, sequence - 1):
                yield from (Candidate("logits [batch, sequence, vocab]", (batch, length, vocab)) for vocab in vocabs)
            yield from (
                Candidate("attention scores [batch, heads, sequence, sequence]", (batch, head, sequence, sequence))
                for head in heads
            )
        yield from _images(facts, batch, heads)
    for vocab in vocabs:
        for hidden in values(facts, "hidden", "model_hidden"):
            yield Candidate("an embedding or its gradient [vocab, hidden]", (vocab, hidden))


def _images(facts: tuple[Fact, ...], batch: int, heads: list[int]) -> Iterator[Candidate]:
    """Attention over the patches of an image, or over the positions of a latent."""
    sides = [(side, side) for side in values(facts, "latent")]
    sides += list(zip(values(facts, "image_height"), values(facts, "image_width"), strict=False))
    for height, width in sides:
        for patch in _PATCHES:
            tokens = (height // patch) * (width // patch)
            for extra in (0, 1):
                for head in heads or [8]:
                    yield Candidate(
                        "attention scores [batch, heads, tokens, tokens]", (batch, head, tokens + extra, tokens + extra)
                    )
