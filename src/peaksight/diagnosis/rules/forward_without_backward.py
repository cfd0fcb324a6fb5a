"""# A forward records a graph that no backward pass goes through

## What it finds
Calls of a model with autograd recording, after which no backward pass of the run uses anything that
they saved: a teacher, an average of the weights, a reference or target model, or a validation without
`torch.no_grad()`. In a script that ran to its end and trains nothing (`--steps 0`), that is every call.

## Why it costs memory
With autograd recording each layer keeps what its gradient would need, until the result is let go.
Without it, a forward holds the input and the output of one layer at a time. `model.eval()` changes
what dropout and batch norm do, and records all the same; `.detach()` of the result comes too late.

## Example
```python
teacher.eval()
targets = teacher(x).detach()  # its activations were all there a moment ago

with torch.no_grad():
    targets = teacher(x)  # they never are
```

## Fixes
- `with torch.no_grad():` or `torch.inference_mode()` around it: bitwise the same training.
- `teacher.requires_grad_(False)`, where the inputs need no gradient either.

## Known misses
A forward of which only a part is used counts as used. Graphs that are kept over several calls are
told by accumulated-graph, with what is kept beyond one.
"""

from bisect import bisect_left
from collections.abc import Iterator

from peaksight.diagnosis.evidence import Evidence, largest_lines, main_line, total_bytes
from peaksight.diagnosis.rule import Answer, Need, Refuted, Rule, is_notable
from peaksight.records import Allocation, Basis, CallFact, Effect, Finding, Fix, Phase, Role
from peaksight.units import format_bytes

# Without a graph a result lives until the next operator, or the one after it, has taken it.
NUM_BIRTHS_ALIVE = 2


def examine(evidence: Evidence) -> Answer:
    """What calls save in vain."""
    calls = list(calls_without_backward(evidence))
    if not calls:
        return Refuted("a backward pass uses something of every forward that autograd recorded")
    saved_in_vain = {a: tick for call in calls for a, tick in _saved_in(evidence, call)}
    saved = evidence.saved_by_freeing(saved_in_vain)
    if not is_notable(evidence, saved):
        return Refuted(f"without what {len(calls)} such forwards save the peak falls by {format_bytes(saved)} only")
    held = [allocation for allocation in evidence.live if allocation in saved_in_vain]
    modules = sorted({call.module for call in calls})
    return [
        Finding(
            rule=RULE.slug,
            title=f"Forwards of {modules[0]} save {format_bytes(total_bytes(held))} for no backward pass",
            bytes=saved,
            evidence=(
                *largest_lines(held),
                f"autograd recorded {len(calls)} calls of {modules[0]}"
                f"{' in eval mode' if not calls[0].training else ''}, and no backward pass used what they saved",
            ),
            fixes=(
                Fix(
                    kind="no-grad",
                    text="with torch.no_grad(): around these calls",
                    effect=Effect.BITWISE,
                    saves_bytes=saved,
                ),
            ),
            basis=Basis.LIFETIME,
            at=main_line(held),
        )
    ]


def calls_without_backward(evidence: Evidence) -> Iterator[CallFact]:
    """Recorded calls of whose blocks no backward pass used any.

    What a run that was left did after its last step may have had a backward pass to come.
    """
    last = max((fact.tick for fact in evidence.capture.backwards), default=0)
    for call in evidence.capture.passes:
        may_come = call.training and call.first_tick > last and evidence.capture.finished != "script"
        if call.recorded and not may_come and not _is_used(evidence, call):
            yield call


def _is_used(evidence: Evidence, call: CallFact) -> bool:
    """Whether a backward pass needed what `call` made, beside its result, which may be a constant for another graph."""
    made = [a for a in evidence.born_between(call.first_tick, call.last_tick + 1) if a.role is Role.UNMARKED]
    alive = [allocation for allocation in made if _lives_to(allocation, call.last_tick)]
    result = alive[-1] if len(alive) > 1 else None
    return any(a.backward for a in made if a is not result) or _is_recomputed(evidence, call)


def _is_recomputed(evidence: Evidence, call: CallFact) -> bool:
    """Whether a backward pass of the same step ran modules of `call` again, as checkpoints have it."""
    end = next((peaks.last_tick for peaks in evidence.capture.steps if peaks.step == call.step), call.last_tick)
    again = (a for a in evidence.born_between(call.first_tick, end + 1) if a.phase is Phase.BACKWARD)
    return any(a.grad_enabled and a.module.startswith(call.module) for a in again)


def _saved_in(evidence: Evidence, call: CallFact) -> Iterator[tuple[Allocation, int]]:
    """What outlives `call` or is there at the peak inside of it, with the tick at which it would have gone without."""
    births = evidence.born_between(call.first_tick, call.last_tick + 1)
    peak = evidence.capture.peak_tick
    looked_at = peak if call.first_tick <= peak <= call.last_tick else call.last_tick
    ticks = [allocation.born for allocation in births]
    for allocation in births[:-1]:
        following = bisect_left(ticks, allocation.born) + NUM_BIRTHS_ALIVE
        is_of_graph = allocation.grad_enabled and allocation.role is Role.UNMARKED
        if is_of_graph and following < len(ticks) and _lives_to(allocation, max(ticks[following], looked_at)):
            yield allocation, ticks[following] - 1


def _lives_to(allocation: Allocation, tick: int) -> bool:
    return allocation.died is None or allocation.died > tick


RULE = Rule("forward-without-backward", examine, needs=(Need.OBSERVED, Need.BACKWARD_OR_END), refines=("graph-kept",))
