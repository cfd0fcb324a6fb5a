"""# Gradients of parameters that no optimizer trains

## What it finds
At the end of a step there are more gradients than the optimizers have parameters, and the rest is never let
go of: a backward pass goes through a model that is not trained, such as a reference, a teacher or a part that
was left out of the optimizer, because its parameters need a gradient.

## Why it costs memory
Everything that such a model computes is saved for the backward, and each of its parameters gets a gradient of
its own size, to which every step adds. `optimizer.zero_grad()` does not know of them.

## Example
```python
reference = copy.deepcopy(model)  # its parameters need gradients, as those of the model do
loss = kl(model(x), reference(x))
loss.backward()  # through both

with torch.no_grad():
    wanted = reference(x)  # nothing is saved, and no gradient made
```

## Fixes
- `with torch.no_grad():` around it, or `reference.requires_grad_(False)`: bitwise the same training. Where
  the gradient is to flow through it to something trained, `requires_grad_(False)` alone.

## Known misses
Gradients that are set to zero instead of `None` all stay: nothing then tells which of them are in vain.
"""

from collections.abc import Iterator, Sequence

from peaksight.attribution.live_set import is_alive
from peaksight.diagnosis.evidence import Evidence, largest_lines, main_line, total_bytes
from peaksight.diagnosis.rule import Answer, Need, NotDecidable, Refuted, Rule, is_notable
from peaksight.records import Allocation, Basis, CallFact, Effect, Finding, Fix, Phase, Role
from peaksight.units import format_bytes

# What blocks are larger than the tensors in them.
ROUNDING = 1.2


def examine(evidence: Evidence) -> Answer:
    """Gradients that outlive steps, beyond what optimizers train, and what was saved for them."""
    trained = sum(row.parameter_bytes for row in evidence.capture.optimizers if not row.frozen)
    ends = [step.last_tick for step in evidence.capture.steps if step.complete]
    gradients = [a for a in evidence.capture.allocations if a.role is Role.GRADIENT]
    most = max((total_bytes(_alive(gradients, end)) for end in ends), default=0)
    if not trained or most < ROUNDING * trained:
        return Refuted(f"gradients of {format_bytes(most)}, and optimizers train {format_bytes(trained)}")
    kept = [a for a in _alive(gradients, ends[0]) if a.died is None or a.died > ends[1]]
    if total_bytes(kept) > ROUNDING * (most - trained):
        return NotDecidable("gradients are set to zero, not to None: which of them are in vain does not show")
    saved_for_them = list(_saved_for(evidence, kept))
    falls = evidence.saved_without([*kept, *saved_for_them])
    if not is_notable(evidence, falls):
        return Refuted(f"without gradients that nothing updates with the peak falls by {format_bytes(falls)} only")
    return [_finding(evidence, kept, saved_for_them, trained, falls)]


def _finding(
    evidence: Evidence, kept: Sequence[Allocation], saved_for_them: Sequence[Allocation], trained: int, falls: int
) -> Finding:
    held = evidence.live_of(saved_for_them)
    return Finding(
        rule=RULE.slug,
        title=f"{format_bytes(total_bytes(kept))} of gradients are of parameters that no optimizer trains",
        bytes=falls,
        evidence=(
            f"optimizers train {format_bytes(trained)} of parameters; these gradients are never let go of",
            f"{format_bytes(total_bytes(held))} of activations at the peak are saved for nothing else",
            *largest_lines(held),
        ),
        fixes=(
            Fix(
                kind="no-grad",
                text="with torch.no_grad(): around what is not trained, or requires_grad_(False) on it",
                effect=Effect.BITWISE,
                saves_bytes=falls,
            ),
        ),
        basis=Basis.LIFETIME,
        at=main_line(held or kept),
    )


def _alive(gradients: Sequence[Allocation], tick: int) -> list[Allocation]:
    return [gradient for gradient in gradients if is_alive(gradient, tick)]


def _saved_for(evidence: Evidence, gradients: Sequence[Allocation]) -> Iterator[Allocation]:
    """What the calls that these gradients are of saved, and the same calls of other steps.

    Where a gradient goes through a call to what it was given, its activations are needed nevertheless.
    """
    nodes = _nodes_of(evidence, gradients)
    of_them = ((call, place) for call, place in _placed(evidence) if _has(evidence, call, nodes))
    places = {(call.module, place) for call, place in of_them if not call.input_needs_grad}
    for call, place in _placed(evidence):
        if (call.module, place) in places:
            for allocation in evidence.born_between(call.first_tick, call.last_tick + 1):
                if allocation.backward and allocation.role is Role.UNMARKED:
                    yield allocation


def _nodes_of(evidence: Evidence, gradients: Sequence[Allocation]) -> set[int]:
    """The nodes that made `gradients`, and those whose results were added to them, as of a second call."""
    places = {(a.module, a.tensor) for a in gradients}
    made = (a for a in evidence.capture.allocations if a.phase is Phase.BACKWARD and a.role is Role.UNMARKED)
    added = {a.node for a in made if (a.module, a.tensor) in places}
    return {node for node in added.union(a.node for a in gradients) if node}


def _has(evidence: Evidence, call: CallFact, nodes: set[int]) -> bool:
    """Whether `call` saved something for a node that made such a gradient."""
    saved = [a for a in evidence.born_between(call.first_tick, call.last_tick + 1) if a.node in nodes]
    return any(a.backward for a in saved)


def _placed(evidence: Evidence) -> Iterator[tuple[CallFact, int]]:
    """The recorded calls, each with its place among those of its step."""
    step, place = 0, 0
    for call in evidence.capture.passes:
        if call.recorded:
            step, place = call.step, place + 1 if call.step == step else 0
            yield call, place


RULE = Rule("gradients-unused", examine, needs=(Need.OBSERVED, Need.TWO_STEPS))
