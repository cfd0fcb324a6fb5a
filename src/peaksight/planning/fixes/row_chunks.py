"""Modules whose input has more rows than the batch has samples, a part of the rows at a time."""

from collections import Counter
from collections.abc import Iterable, Iterator, Sequence

from peaksight.diagnosis.shapes import parsed
from peaksight.planning.blocks import checkpointable_blocks
from peaksight.planning.kind import FixKind, Proposal
from peaksight.planning.situation import Situation
from peaksight.records import Allocation
from peaksight.records.findings import Effect
from peaksight.records.proposals import Candidate

# Of the peak, what one of the modules has to hold for the backward pass.
_MIN_SHARE = 0.05
_CHUNKS = (4, 16)


def _propose(situation: Situation) -> Iterator[Proposal]:
    blocks = [path for path in checkpointable_blocks(situation) if _has_many_rows(situation, path)]
    still = [path for block in blocks for path in _without_draws(situation, block)]
    drawing = [path for path in blocks if _draws(_saved_in(situation, path))]
    for chunks in _CHUNKS if still else ():
        yield _candidate(still, chunks)
    for chunks in _CHUNKS if drawing else ():
        yield _candidate(blocks, chunks, draws=True)


def _candidate(paths: Sequence[str], chunks: int, draws: bool = False) -> Candidate:
    title = f"{len(paths)} modules in {chunks} chunks of their rows"
    if not draws:
        return FIX.candidate("row-chunks", title=title, effect=Effect.ROUNDING, modules=list(paths), chunks=chunks)
    title += ", with other masks of dropout"
    cautions = ("dropout draws other masks in chunks of rows",)
    return FIX.candidate("row-chunks", title=title, cautions=cautions, modules=list(paths), chunks=chunks, draws=True)


def _without_draws(situation: Situation, block: str) -> list[str]:
    """`block`, or those modules directly in it that have many rows and draw no random numbers."""
    saved = _saved_in(situation, block)
    if not _draws(saved):
        return [block]
    depth = block.count(".") + 2
    children = dict.fromkeys(".".join(a.module.split(".")[:depth]) for a in saved if a.module != block)
    return [path for path in children if _has_many_rows(situation, path) and not _draws(_saved_in(situation, path))]


def _has_many_rows(situation: Situation, path: str) -> bool:
    """Whether most of what `path` saves has more rows than a batch has samples, and it is much."""
    saved = _saved_in(situation, path)
    if sum(a.allocated_bytes for a in saved) < _MIN_SHARE * situation.capture.peak_allocated_bytes:
        return False
    samples = max((call.rows for call in situation.capture.passes if call.recorded and call.training), default=0)
    held: Counter[int] = Counter()
    for a in saved:
        sizes = parsed(a.tensor).sizes
        if len(sizes) > 2:
            held[sizes[0]] += a.allocated_bytes
    ((rows, _),) = held.most_common(1) or ((0, 0),)
    return rows > samples > 0 and not any("BatchNorm" in a.saved_by for a in saved)


def _saved_in(situation: Situation, path: str) -> list[Allocation]:
    return [a for a in situation.saved if a.module == path or a.module.startswith(f"{path}.")]


def _draws(saved: Iterable[Allocation]) -> bool:
    return any("Dropout" in a.saved_by or "dropout" in a.op for a in saved)


FIX = FixKind(
    slug="row-chunks",
    title="independent rows in chunks",
    effect=Effect.NOISE,
    text=(
        "A module may have far more rows than the batch has samples: a sequence for each pair of electrodes, a window "
        "of an image. Where rows do not depend on each other it goes through a part of them at a time, each part "
        "checkpointed, and only one part's activations are there. The same formula, gradients of weights summed in "
        "another order; with dropout inside, other masks. That rows are independent is proved when the module is first "
        "called, by the operators that it runs for two and for three rows of its input: what mixes rows, keeps "
        "something, depends on how many rows there are, or is not known stays as it is, and so does a module that is "
        "called with anything but one tensor."
    ),
    propose=_propose,
)
