"""# An evaluation collects its results on the card

## What it finds
Blocks made in an evaluation, with a model in eval mode or without autograd, that are still there when
later batches of it are: predictions, labels or losses in a list, the state of a metric that keeps every
sample, or a tensor that is concatenated anew for every batch.

## Why it costs memory
What a batch leaves is multiplied by their number, which grows with the validation set and not with
the batch size. Concatenation makes it worse: while the new tensor is made the old one is there too.

## Example
```python
with torch.no_grad():
    for x, y in loader:
        logits.append(model(x))  # the whole validation set

        logits.append(model(x).cpu())
```

## Fixes
- `.cpu()` before it is kept; for transformers' Trainer `eval_accumulation_steps`, and
  `preprocess_logits_for_metrics` or `ignore_keys` for what no metric needs: bitwise the same training.
- A metric that counts instead of keeping samples (`thresholds=` of torchmetrics): other numbers.

## Known misses
What is kept with its graph is told by accumulated-graph. The peak of `compute()` on top of what was
collected is not estimated.
"""

from collections import defaultdict
from collections.abc import Iterator, Sequence
from functools import partial
from itertools import groupby, pairwise

from peaksight.diagnosis.earlier_steps import names_of
from peaksight.diagnosis.evidence import Evidence, largest_lines, main_line, total_bytes
from peaksight.diagnosis.rule import Answer, Need, Refuted, Rule, is_notable
from peaksight.records import Allocation, Basis, CallFact, Effect, Finding, Fix, Role
from peaksight.units import format_bytes

MIN_BATCHES = 3
_Place = tuple[str, str, str]


def examine(evidence: Evidence) -> Answer:
    """What the batches of evaluations leave to later ones."""
    kept: dict[Allocation, int] = {}
    in_training_mode = False
    for calls, end in _evaluations(evidence):
        collected = _collected(evidence, calls, end)
        in_training_mode |= bool(collected) and all(call.training for call in calls)
        kept |= collected
    saved = evidence.saved_by_freeing(kept)
    held = [allocation for allocation in evidence.live if allocation in kept]
    if not is_notable(evidence, saved):
        return Refuted(f"batches of evaluations leave {format_bytes(total_bytes(held))} that is there at the peak")
    # A model that acts, or labels, in train mode evaluates nothing.
    who = "Forward passes without a backward leave" if in_training_mode else "An evaluation collects"
    return [
        Finding(
            rule=RULE.slug,
            title=f"{who} {format_bytes(total_bytes(held))} on the card, in {len(held)} blocks",
            bytes=saved,
            evidence=(*largest_lines(held), *names_of(evidence, held)),
            fixes=(
                Fix(
                    kind="keep-on-host",
                    text="Move what is kept to the host for each batch (.cpu(), eval_accumulation_steps).",
                    effect=Effect.BITWISE,
                    saves_bytes=saved,
                ),
            ),
            basis=Basis.LIFETIME,
            at=main_line(held),
        )
    ]


def _evaluations(evidence: Evidence) -> Iterator[tuple[Sequence[CallFact], int]]:
    """Calls of models in eval mode or without autograd, and the tick at which the next one in training begins.

    What recorded calls save is another cause.
    """
    passes = groupby(evidence.capture.passes, key=partial(_is_training, evidence))
    runs = [(is_training, list(calls)) for is_training, calls in passes]
    last = max((allocation.born for allocation in evidence.capture.allocations), default=0) + 1
    ends = [*(calls[0].first_tick for _, calls in runs[1:]), last]
    for (is_training, calls), end in zip(runs, ends, strict=False):
        if not is_training and len(calls) >= MIN_BATCHES:
            yield calls, end


def _is_training(evidence: Evidence, call: CallFact) -> bool:
    """Whether `call` trains, or a backward pass uses what it saved, as that of a frozen model in `eval()`."""
    made = evidence.born_between(call.first_tick, call.last_tick + 1)
    return (call.training and call.recorded) or any(allocation.backward for allocation in made)


def _collected(evidence: Evidence, calls: Sequence[CallFact], end: int) -> dict[Allocation, int]:
    """What is kept of one evaluation, with the tick at which it should have gone."""
    begins = [*(call.first_tick for call in calls), end]
    by_place: dict[_Place, list[tuple[int, Allocation]]] = defaultdict(list)
    for batch, first, last in zip(range(len(calls)), begins, begins[1:], strict=False):
        for allocation in evidence.born_between(first, last):
            is_saved = calls[batch].recorded and allocation.grad_enabled
            if allocation.role in (Role.UNMARKED, Role.INPUT) and not is_saved:
                by_place[_place(allocation)].append((batch, allocation))
    kept: dict[Allocation, int] = {}
    for members in by_place.values():
        if _are_joined(members):
            kept |= {allocation: allocation.born for _, allocation in members}
        elif _are_kept(members, begins):
            kept |= {allocation: begins[batch + 1] - 1 for batch, allocation in members}
    return kept


def _are_kept(members: Sequence[tuple[int, Allocation]], begins: Sequence[int]) -> bool:
    """Whether what two batches made at one place outlived the whole batch after."""
    outlived = {
        batch
        for batch, allocation in members
        if batch + 2 < len(begins) and (allocation.died is None or allocation.died > begins[batch + 2])
    }
    return len(outlived) >= 2


def _are_joined(members: Sequence[tuple[int, Allocation]]) -> bool:
    """Whether a concatenation grows from batch to batch."""
    sizes: dict[int, int] = defaultdict(int)
    for batch, allocation in members:
        sizes[batch] += allocation.requested_bytes
    if len(sizes) < MIN_BATCHES - 1 or members[0][1].op != "aten::cat":
        return False
    return all(before < after for before, after in pairwise(sizes.values()))


def _place(allocation: Allocation) -> _Place:
    return allocation.source, f"{allocation.library} {allocation.module}", allocation.op


RULE = Rule("evaluation-accumulates", examine, needs=(Need.OBSERVED,), refines=("outlier-batch",))
