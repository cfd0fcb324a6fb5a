"""# Logits of a large vocabulary, or of positions without a label

## What it finds
Tensors of positions x classes around a classification loss: logits, their float32 copies, log-
probabilities and gradients, where the classes are very many.

## Why it costs memory
A vocabulary of 128,256 makes a row of logits 250 KiB in bfloat16 and twice that in float32. The
loss keeps log-probabilities of that size, its backward makes gradients of that size, often once in
each precision. Positions that the loss ignores (prompt, padding) cost as much as the others.

## Example
```python
logits = model(ids).logits.float()  # float32[8, 2048, 128256] is 7.8 GiB, the loss makes as much again
loss = F.cross_entropy(logits.flatten(0, 1), labels.flatten())
```

## Fixes
- Compute the loss in slices of positions with checkpointing around each, or with a fused kernel
  (liger_kernel's fused linear cross-entropy): up to rounding the same.
- Compute logits only where a label is: `lm_head(hidden[labels != -100])`. Up to rounding the same.

## Known misses
How many positions have a label is known where labels come from the host with -100 for none, or are
put together of such on the card; else the estimate is of all of them. A last dimension
that a tensor outside of repeated blocks shares by chance is taken for the classes.
"""

from collections import Counter
from collections.abc import Iterator, Sequence

from peaksight.diagnosis.evidence import Evidence, largest_lines, main_line, total_bytes
from peaksight.diagnosis.module_blocks import block_of
from peaksight.diagnosis.rule import NATURAL_SHARE, Answer, Refuted, Rule, is_notable
from peaksight.diagnosis.shapes import shape_of
from peaksight.records import Allocation, Basis, Effect, Finding, Fix, LabelFact, Phase, Role
from peaksight.units import format_bytes

LOSSES = {"aten::_log_softmax", "aten::_log_softmax_backward_data"}
# Fewer classes than that are no vocabulary.
MIN_CLASSES = 1024
# Of the positions: the last word of every sequence has no next one, which is no reason to select.
MIN_IGNORED = 0.02


def examine(evidence: Evidence) -> Answer:
    """All blocks of the shape that a log-softmax over a vocabulary has."""
    blocks = tuple(logits_of(evidence))
    if not blocks:
        return Refuted(f"no log-softmax is over {MIN_CLASSES} classes or more")
    falls = evidence.saved_without(blocks)
    if not is_notable(evidence, falls):
        return Refuted(f"without logits and what is made of them the peak falls by {format_bytes(falls)} only")
    of_run = frozenset(blocks)
    held = [a for a in evidence.live if a in of_run]
    largest = shape_of(max(blocks, key=lambda a: a.allocated_bytes))
    rows, classes = largest.numel // largest.sizes[-1], largest.sizes[-1]
    labels = _labels_of(evidence, rows)
    return [
        Finding(
            rule=RULE.slug,
            title=f"Logits of {rows} positions x {classes} classes hold {evidence.share(total_bytes(held))}"
            f"{_labelled(labels)}",
            bytes=falls,
            evidence=(*largest_lines(held), f"one tensor of that size is {largest.dtype}{list(largest.sizes)}"),
            fixes=(
                Fix(
                    kind="sliced-loss",
                    text=f"{_sliced(held)} a fused linear cross-entropy.",
                    effect=Effect.ROUNDING,
                    saves_bytes=falls,
                ),
                *_fewer(evidence, blocks, labels),
            ),
            basis=Basis.PATTERN,
            at=main_line(held),
        )
    ]


def _sliced(held: Sequence[Allocation]) -> str:
    """Slices whose log-probabilities wait for one backward save nothing unless they are checkpointed."""
    log_probs = Counter((a.source, a.step) for a in held if a.op == "aten::_log_softmax")
    most = max(log_probs.values(), default=0)
    if most < 2:
        return "Compute head and loss in slices of positions, or with"
    return f"Checkpoint head and loss, of which {most} calls keep log-probabilities here, or take"


def _labels_of(evidence: Evidence, rows: int) -> LabelFact | None:
    """The last labels before the peak of those whose number is nearest to the `rows` of logits, if some have none."""
    before = [label for label in evidence.capture.labels if label.born <= evidence.capture.peak_tick]
    about = [label for label in before if rows <= 2 * label.count <= 4 * rows]
    nearest = min(reversed(about), key=lambda label: abs(label.count - rows), default=None)
    return nearest if nearest and nearest.num_ignored >= MIN_IGNORED * nearest.count else None


def _labelled(labels: LabelFact | None) -> str:
    if labels is None:
        return ""
    share = 100 * labels.num_ignored / labels.count
    return f"; {labels.count - labels.num_ignored} of {labels.count} have a label, {share:.0f} % none"


def _fewer(evidence: Evidence, blocks: Sequence[Allocation], labels: LabelFact | None) -> Iterator[Fix]:
    """Logits for labelled positions only, and what is then left of `blocks`."""
    if labels is None:
        return
    share = 1 - labels.num_ignored / labels.count
    left = evidence.lifetimes.with_sizes({block: int(block.allocated_bytes * share) for block in blocks})
    yield Fix(
        kind="labelled-positions",
        text="Compute logits only where a label is: lm_head(hidden[labels != -100]).",
        effect=Effect.ROUNDING,
        saves_bytes=evidence.peak_bytes - left,
    )


def logits_of(evidence: Evidence) -> Iterator[Allocation]:
    """Logits, log-probabilities, copies and gradients: unmarked blocks with as many classes and about as many rows.

    What an optimizer makes has these sizes by chance.
    """
    of_pictures = _shapes_of_pictures(evidence)
    losses = (a for a in evidence.capture.allocations if a.op in LOSSES and shape_of(a).sizes not in of_pictures)
    sizes = {_rows_and_classes(a) for a in losses}
    rows_of: dict[int, int] = {}
    for rows, classes in sizes:
        if classes >= MIN_CLASSES:
            rows_of[classes] = max(rows, rows_of.get(classes, 0))
    for allocation in evidence.capture.allocations:
        rows, classes = _rows_and_classes(allocation)
        if allocation.role is not Role.UNMARKED or allocation.phase in (Phase.OPTIMIZER, Phase.INIT):
            continue
        if classes in rows_of and 2 * rows >= rows_of[classes] and not _is_inside_block(allocation):
            yield allocation


def _shapes_of_pictures(evidence: Evidence) -> set[tuple[int, ...]]:
    """Those of log-softmaxes that `nll_loss2d` reads: of pictures or sounds, with classes in the second dimension."""
    found: set[tuple[int, ...]] = set()
    log_probs: tuple[int, ...] = ()
    for allocation in evidence.capture.allocations:
        if allocation.op == "aten::_log_softmax":
            log_probs = shape_of(allocation).sizes
        elif allocation.op == "aten::nll_loss2d_forward":
            found.add(log_probs)
    return found


def _is_inside_block(allocation: Allocation) -> bool:
    """Whether a part of a repeated block made it (`layers.3.mlp`), as wide as there are classes by chance."""
    return block_of(allocation.module) not in ("", allocation.module) and allocation.op not in LOSSES


def _rows_and_classes(allocation: Allocation) -> tuple[int, int]:
    shape = shape_of(allocation)
    classes = shape.sizes[-1] if shape.sizes else 0
    return (shape.numel // classes if classes else 0), classes


RULE = Rule("logits-unsupervised", examine, large_share=NATURAL_SHARE, refines=("one-large-tensor",))
