"""# A small view keeps a large storage

## What it finds
Tensors that the script keeps after their step, after their part of a batch or after their batch of an
evaluation, and that show only a part of the block behind them: a slice, a row, `x[:, 0]`, detached or
not.

## Why it costs memory
A view shares the storage of what it was taken from, and `.detach()` gives a view as well: it lets go
of the graph, and of no byte. As long as one element is kept, the whole block is.

## Example
```python
tokens.append(hidden[:, 0].detach())  # keeps all positions of `hidden`

tokens.append(hidden[:, 0].detach().clone())  # keeps one
```

## Fixes
- `.clone()` behind the slice, or `.cpu()`, which copies what is shown alone. Bitwise the same.

## Known misses
Where another variable leads to the whole tensor too, a copy of the view would free nothing. What is
kept for less than a forward and its backward is not looked at.
"""

from bisect import bisect_right

from peaksight.diagnosis.earlier_steps import names_of
from peaksight.diagnosis.evidence import Evidence, largest_lines, main_line, total_bytes
from peaksight.diagnosis.overdue import Overdue
from peaksight.diagnosis.rule import Answer, Need, Refuted, Rule, is_notable
from peaksight.records import Allocation, Basis, Effect, Finding, Fix, Role
from peaksight.units import format_bytes


def examine(evidence: Evidence) -> Answer:
    """Blocks that outlive their use for the sake of a part of them."""
    shown = _shown(evidence)
    overdue = Overdue(evidence).ticks
    due = {a: tick for a in shown if (tick := overdue.get(a) or _due(evidence, a)) is not None}
    held = [a for a in evidence.live if a in due and due[a] < evidence.capture.peak_tick]
    kept_bytes = sum(shown[allocation] for allocation in held)
    saved = evidence.saved_by_freeing(due) - kept_bytes
    if not is_notable(evidence, saved):
        return Refuted(f"views that are kept hold {format_bytes(total_bytes(held) - kept_bytes)} beyond what they show")
    return [
        Finding(
            rule=RULE.slug,
            title=f"Views that show {format_bytes(kept_bytes)} keep {format_bytes(total_bytes(held))}: "
            "a slice shares its storage",
            bytes=saved,
            evidence=(*largest_lines(held), *names_of(evidence, held)),
            fixes=(
                Fix(
                    kind="clone-view",
                    text="Keep a copy of the part: x[:, 0].detach().clone(), or .cpu().",
                    effect=Effect.BITWISE,
                    saves_bytes=saved,
                ),
            ),
            basis=Basis.LIFETIME,
            at=main_line(held),
        )
    ]


def kept_by_views(evidence: Evidence) -> list[Allocation]:
    """The blocks at the peak that are there for the sake of a part of them."""
    shown = _shown(evidence)
    return [a for a in evidence.live if a in shown and _due(evidence, a) is not None]


def _shown(evidence: Evidence) -> dict[Allocation, int]:
    """The bytes that the names of a block show at the last look, and of blocks that were made at the same places."""
    shown: dict[Allocation, int] = {}
    places: dict[tuple[str, str, str], float] = {}
    for allocation in evidence.capture.allocations:
        holds = [hold for hold in evidence.holds.get(allocation.born, ()) if not hold.by_graph]
        later = [hold for hold in holds if hold.step > allocation.step] or holds
        if later and 0 < later[-1].shown_bytes < allocation.requested_bytes and allocation.role is Role.UNMARKED:
            places[_place(allocation)] = later[-1].shown_bytes / allocation.requested_bytes
    for allocation in evidence.capture.allocations:
        part = places.get(_place(allocation))
        if part is not None and allocation.role is Role.UNMARKED:
            shown[allocation] = int(part * allocation.requested_bytes)
    return shown


def _due(evidence: Evidence, allocation: Allocation) -> int | None:
    """The end of the step that made it, or in an evaluation the beginning of the batch after the next one."""
    ends = {peaks.step: peaks.last_tick for peaks in evidence.capture.steps if peaks.complete}
    begins = [call.first_tick for call in evidence.capture.passes if not call.training]
    following = bisect_right(begins, allocation.born) + 1
    if not allocation.grad_enabled and following < len(begins):
        return _if_alive(allocation, begins[following] - 1)
    return _if_alive(allocation, ends.get(allocation.step))


def _if_alive(allocation: Allocation, tick: int | None) -> int | None:
    return tick if tick is not None and (allocation.died is None or allocation.died > tick) else None


def _place(allocation: Allocation) -> tuple[str, str, str]:
    return allocation.source, allocation.module, allocation.op


RULE = Rule(
    "detach-shares-storage",
    examine,
    needs=(Need.OBSERVED,),
    refines=("grows-each-step", "evaluation-accumulates", "graph-kept"),
)
