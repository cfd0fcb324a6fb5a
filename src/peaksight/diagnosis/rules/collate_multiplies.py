"""# The loader gives several rows for each sample that it was asked for

## What it finds
A DataLoader whose batches have k times as many rows as its batch size says, the same k of most
batches: the collate function or the dataset makes crops, views, augmentations or candidates of a
sample, and puts them all in one batch.

## Why it costs memory
Activations grow with the rows that arrive, not with `batch_size`. What is tuned as a batch of 16 is
one of 128 to the model, and all of it is saved for one backward pass.

## Example
```python
def collate(samples):
    return torch.stack([crop(image) for image in samples for _ in range(8)])  # batch_size=16: 128 images
```

## Fixes
- A smaller batch_size, with gradient accumulation: the same objective up to what batches share, as
  batch normalisation or negatives of a contrastive loss do.
- Fewer rows for each sample: changes the training.

## Known misses
Rows that the training loop itself makes of a batch (`images.flatten(0, 1)`) are not seen, nor those
of a loader that is asked for one sample. Tensors that do not agree in their rows, lengths in the
first dimension and packed graphs are taken for what they are. That several rows may be meant, as
the two views of a contrastive loss, is not known: the finding says what is there. Its bytes are an
estimate: what depends on the batch is taken with 1/k of its size.
"""

from collections import Counter, defaultdict
from collections.abc import Iterator, Sequence

from peaksight.diagnosis.evidence import Evidence, largest_lines
from peaksight.diagnosis.input_dependent import depends_on_input
from peaksight.diagnosis.rule import Answer, Need, NotDecidable, Refuted, Rule, is_notable
from peaksight.diagnosis.shapes import Shape, parsed
from peaksight.records import Allocation, Basis, BatchFact, Effect, Finding, Fix
from peaksight.units import format_bytes


def examine(evidence: Evidence) -> Answer:
    """The loaders whose batches have as many rows for each sample, most of the time."""
    batches = evidence.capture.batches
    if not batches:
        return NotDecidable("no DataLoader gave a batch")
    by_loader: dict[int, list[BatchFact]] = defaultdict(list)
    for batch in batches:
        by_loader[batch.loader].append(batch)
    factors = {loader: factor for loader, facts in by_loader.items() if (factor := _usual_factor(facts)) > 1}
    if not factors:
        return Refuted(f"no loader gives several rows a sample: {_words(batches[0])}")
    answers = [_examined(by_loader[loader], factor, evidence) for loader, factor in factors.items()]
    findings = [answer for answer in answers if isinstance(answer, Finding)]
    return findings or next(answer for answer in answers if isinstance(answer, Refuted))


def _examined(facts: Sequence[BatchFact], factor: int, evidence: Evidence) -> Finding | Refuted:
    """By how much the peak falls with one row a sample, as far as blocks go with the rows."""
    blocks = list(_made_of(facts, evidence))
    lower = evidence.lifetimes.with_sizes({block: block.allocated_bytes // factor for block in blocks})
    falls = evidence.lifetimes.peak_bytes - lower
    if not is_notable(evidence, falls):
        return Refuted(f"with one row a sample instead of {factor} the peak falls by {format_bytes(falls)} only")
    of_loader = frozenset(blocks)
    fact = next(fact for fact in facts if _factor(fact) == factor)
    return Finding(
        rule=RULE.slug,
        title=f"The loader gives {factor * fact.batch_size} rows at a batch size of {fact.batch_size}: "
        f"{factor} times as many",
        bytes=falls,
        evidence=(
            f"{_words(fact)}, and so it is in {_count(facts, factor)} of {len(facts)} batches",
            f"what depends on the batch with 1/{factor} of its size, the peak would be {format_bytes(falls)} lower: an "
            "estimate",
            *largest_lines(block for block in evidence.live if block in of_loader),
        ),
        fixes=(
            Fix(
                kind="smaller-batch",
                text=f"Divide batch_size by up to {factor} and accumulate gradients, or make fewer rows of a sample.",
                effect=Effect.MODEL,
                saves_bytes=falls,
            ),
        ),
        basis=Basis.PATTERN,
        at=fact.at,
    )


def _made_of(facts: Sequence[BatchFact], evidence: Evidence) -> Iterator[Allocation]:
    """What depends on the input, and was born while a batch of `facts` was the last one that any loader gave."""
    all_batches, own = evidence.capture.batches, frozenset(facts)
    end = evidence.capture.allocations[-1].born + 1 if evidence.capture.allocations else 0
    for batch, until in zip(all_batches, [*(after.tick + 1 for after in all_batches[1:]), end], strict=True):
        if batch in own:
            blocks = evidence.born_between(batch.tick + 1, until)
            yield from (block for block in blocks if depends_on_input(evidence, block))


def _usual_factor(facts: Sequence[BatchFact]) -> int:
    """The factor of more than half of `facts`, of two at least; 1 where there is none."""
    factor, num = Counter(map(_factor, facts)).most_common(1)[0]
    return factor if num >= 2 and 2 * num > len(facts) else 1


def _count(facts: Sequence[BatchFact], factor: int) -> int:
    return sum(_factor(fact) == factor for fact in facts)


def _factor(fact: BatchFact) -> int:
    """How many rows a sample has in a batch; 1 where its tensors do not say so with one voice.

    All tensors have the same rows, or one for each sample as a label. Others are packed: the edges of graphs, the
    offsets of sequences, the patches of pictures beside the token ids of each sample. The largest has features beside
    the rows, and the batch is not its second dimension.
    """
    shapes = [shape for shape in _shapes(fact) if shape.sizes]
    size = fact.batch_size
    if size < 2 or not shapes or len(shapes[0].sizes) < 2 or shapes[0].sizes[1] == size:
        return 1
    rows = shapes[0].sizes[0]
    if rows % size or any(shape.sizes[0] not in (rows, size) or _is_ids(shape, size) for shape in shapes):
        return 1
    return max(rows // size, 1)


def _is_ids(shape: Shape, size: int) -> bool:
    """A sequence of integers for each of `size` samples, which is no label."""
    return shape.dtype == "int64" and len(shape.sizes) > 1 and shape.sizes[0] == size


def _shapes(fact: BatchFact) -> list[Shape]:
    return [parsed(shape) for shape in fact.shapes.split("; ") if shape]


def _words(fact: BatchFact) -> str:
    asked = f"asked for {fact.batch_size} samples" if fact.batch_size else "not told how many samples"
    return f"{asked} at {fact.at}, it gave {fact.shapes or 'no tensor'}"


RULE = Rule("collate-multiplies", examine, needs=(Need.OBSERVED, Need.BACKWARD))
