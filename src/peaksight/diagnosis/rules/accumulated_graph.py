"""# Losses or outputs are added up with their graphs

## What it finds
Graphs of several forward passes are alive together where one would do. Either something adds up
losses or outputs that still have their `grad_fn`, over steps or over the batches of an evaluation,
and no backward pass ever goes through it; or one backward pass goes through the sum of three or more
losses whose graphs have nothing in common, as those of micro-batches.

## Why it costs memory
A tensor with a `grad_fn` keeps everything that its forward saved. A sum of such tensors keeps that
of all of them, so that each pass adds its activations to those before.

## Example
```python
total += loss  # the graph of every batch; total += loss.item() or loss.detach() keeps a number

for micro in batch.chunk(8):
    losses.append(criterion(model(micro), y))
sum(losses).backward()  # eight graphs at once

for micro in batch.chunk(8):
    (criterion(model(micro), y) / 8).backward()  # one
```

## Fixes
- What is only reported: `.item()` or `.detach()`. Bitwise the same training.
- Micro-batches: a backward pass for each, with the loss divided. The same up to rounding.

## Known misses
Losses that depend on each other, as those of the time steps of a recurrence, need their graphs
together: these are no cause. Two terms are told by two-graphs, a graph of one pass by graph-kept.
"""

from peaksight.diagnosis.earlier_steps import names_of
from peaksight.diagnosis.evidence import Evidence, largest_lines, main_line, total_bytes
from peaksight.diagnosis.overdue import Overdue
from peaksight.diagnosis.rule import Answer, Need, Refuted, Rule, is_notable
from peaksight.diagnosis.terms import MIN_MICRO_BATCHES, terms_finding
from peaksight.records import Allocation, Basis, Effect, Finding, Fix
from peaksight.units import format_bytes


def examine(evidence: Evidence) -> Answer:
    """Graphs that nothing goes back through, or terms with one backward pass for all."""
    overdue = Overdue(evidence)
    kept = graphs_kept(overdue)
    num_rounds = len(overdue.rounds(kept))
    if num_rounds > 1 and overdue.has_name(kept):
        saved = evidence.saved_by_freeing(overdue.ticks)
        if is_notable(evidence, saved):
            return [_added_up(evidence, kept, num_rounds, saved)]
    found = terms_finding(evidence, RULE.slug, lambda count: count >= MIN_MICRO_BATCHES)
    if found is not None:
        return [found]
    return Refuted(f"{format_bytes(total_bytes(kept))} of graphs that are done with are alive at the peak")


def graphs_kept(overdue: Overdue) -> tuple[Allocation, ...]:
    """What is alive at the peak of graphs that nothing was asked to retain."""
    retained = set(overdue.retained(overdue.at_peak))
    return overdue.of_graphs(a for a in overdue.at_peak if a not in retained)


def _added_up(evidence: Evidence, kept: tuple[Allocation, ...], num_rounds: int, saved: int) -> Finding:
    each = format_bytes(total_bytes(kept) // num_rounds)
    return Finding(
        rule=RULE.slug,
        title=f"The graphs of {num_rounds} forward passes are kept by what collects their results, {each} each",
        bytes=saved,
        evidence=(*largest_lines(kept), *names_of(evidence, kept)),
        fixes=(
            Fix(
                kind="detach",
                text="Keep loss.item() or output.detach(), not the tensor with its graph.",
                effect=Effect.BITWISE,
                saves_bytes=saved,
            ),
        ),
        basis=Basis.LIFETIME,
        at=main_line(kept),
    )


RULE = Rule("accumulated-graph", examine, needs=(Need.BACKWARD,))
