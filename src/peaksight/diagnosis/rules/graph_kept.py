"""# A graph is kept after its backward pass

## What it finds
Activations that a forward saved for its backward are still alive at the peak, in a later step or in a
later forward of the same model: something holds on to an output, an attention map, a hidden state or
a loss with its graph until it is overwritten, `retain_graph=True` kept it for a hidden state that was
not detached, or it is part of a reference cycle that no variable leads to.

## Why it costs memory
A tensor with a `grad_fn` keeps its whole graph, and the graph keeps every activation that it saved.
A backward pass frees them; without one, or with `retain_graph=True`, they stay for as long as the
tensor does. Two passes are then in memory at the same time, or as many as a cycle outlives.

## Example
```python
for batch in loader:
    output = model(batch)  # while it runs, `output` is still that of the last step
    loss = criterion(output)
    loss.backward(retain_graph=True)

for chunk in chunks:
    output, hidden = rnn(chunk, hidden)  # without hidden.detach() the graph of every chunk before
    criterion(output).backward(retain_graph=True)
```

## Fixes
- Delete the name before the next forward (`del output, loss`), or detach what is kept: bitwise the
  same, unless gradients were meant to flow through it. What the name holds itself, as an attention map,
  stays when it is detached.
- No `retain_graph=True` where a single backward pass is made; a hidden state that is detached lets no
  gradient into the chunk before.
- For a cycle: no object that holds its outputs and is held by them; `create_graph=True` only with
  `torch.autograd.grad`, as a gradient in `.grad` that has a graph is one.

## Known misses
What C++ holds, or an object that no running function reaches, has no name in the evidence. Graphs
that a variable adds up are told by accumulated-graph.
"""

from peaksight.diagnosis.earlier_steps import names_of
from peaksight.diagnosis.evidence import Evidence, largest_lines, main_line, total_bytes
from peaksight.diagnosis.overdue import Overdue
from peaksight.diagnosis.rule import Answer, Need, Refuted, Rule, is_notable
from peaksight.records import Allocation, Basis, Effect, Finding, Fix
from peaksight.units import format_bytes


def examine(evidence: Evidence) -> Answer:
    """What is alive at the peak although the pass that it was for is over."""
    overdue = Overdue(evidence)
    kept = overdue.at_peak
    retained = overdue.retained(kept)
    num_rounds = len(overdue.rounds(kept))
    if num_rounds > 1 and not retained and overdue.has_name(kept):
        return Refuted(
            f"not one graph but those of {num_rounds} forwards are alive: see accumulated-graph and grows-each-step"
        )
    saved = evidence.saved_by_freeing(overdue.ticks)
    if not is_notable(evidence, saved):
        return Refuted(f"what earlier passes saved holds {format_bytes(total_bytes(kept))} at the peak")
    return [
        Finding(
            rule=RULE.slug,
            title=_title(evidence, kept, retained, num_rounds),
            bytes=saved,
            evidence=(*largest_lines(kept), *names_of(evidence, kept), *_retaining(evidence, kept)),
            fixes=(_fix(retained, saved, _is_of_graphs(evidence, kept)),),
            basis=Basis.LIFETIME,
            at=main_line(kept),
        )
    ]


def _title(evidence: Evidence, kept: tuple[Allocation, ...], retained: tuple[Allocation, ...], num_rounds: int) -> str:
    if retained:
        return f"The graphs of {num_rounds} forward passes outlive their backward passes, which retain them"
    steps = {allocation.step for allocation in kept}
    if len(steps) > 1:
        return f"The graphs of {len(steps)} earlier steps are alive, and no variable leads to them"
    (step,) = steps
    if step < evidence.peak_step:
        return f"What step {step} saved for its backward is alive in step {evidence.peak_step}"
    return f"What a forward of step {step} saved is alive in the next one"


def _retaining(evidence: Evidence, kept: tuple[Allocation, ...]) -> tuple[str, ...]:
    passes = {allocation.backward for allocation in kept}
    lines = {fact.at for fact in evidence.capture.backwards if fact.number in passes and fact.retains_graph}
    return tuple(f"the backward pass at {at} was asked to keep its graph" for at in sorted(lines))


def _is_of_graphs(evidence: Evidence, kept: tuple[Allocation, ...]) -> bool:
    """Whether most of it is held by graphs, and not by the names themselves."""
    by_name = [a for a in kept if any(not hold.by_graph for hold in evidence.holds.get(a.born, ()))]
    return 2 * total_bytes(by_name) < total_bytes(kept)


def _fix(retained: tuple[Allocation, ...], saved: int, is_of_graphs: bool) -> Fix:
    if retained:
        return Fix(
            kind="detach-state",
            text="Detach what goes from one forward to the next, and call backward() without retain_graph=True.",
            effect=Effect.MODEL,
            saves_bytes=saved,
        )
    return Fix(
        kind="release-outputs",
        text="Delete the name before the next forward, or detach what is kept."
        if is_of_graphs
        else "Delete the name before the next forward: it holds the blocks themselves, detach() would free none.",
        effect=Effect.BITWISE,
        saves_bytes=saved,
    )


RULE = Rule("graph-kept", examine, needs=(Need.STEPS,))
