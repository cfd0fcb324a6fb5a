"""# An interval that comes after the work

## What it finds
- Work of which every so many parts are used (`vectors = eigh(graphs)`, then `vectors[::interval]`):
  the interval saves what follows, and nothing of the work itself.
- Work whose result is used under an `if step % interval == 0` only, and is made in every step.

## Why it costs memory
The interval looks like one of the work, and is raised to save memory, which does not change. In the
first kind each call holds what a call on the part would hold only a k-th of. In the second the steps
that do not use the result hold it too; those that do have the same peak as ever.

## Example
```python
_, vectors = torch.linalg.eigh(laplacians)  # of all 7680 graphs
vectors = vectors[::interval]

_, vectors = torch.linalg.eigh(laplacians[::interval])
```

## Fixes
- Take the part before the work: bitwise the same where the work is done for each part alone.
- Move the work under the condition: bitwise the same, unless it draws random numbers.

## Known misses
Parts that are taken by an index or a mask, and conditions that are a function's. Where the interval is
no number in the text, the estimate takes it for two, the least that it can be.
"""

from collections.abc import Iterator

from peaksight.diagnosis.evidence import Evidence, largest_lines, total_bytes
from peaksight.diagnosis.rule import Answer, Need, Refuted, Rule, is_notable
from peaksight.records import Allocation, Basis, Category, Effect, Finding, Fix, Role, StatementFact
from peaksight.units import format_bytes

_UNDER_CONDITION = "interval-after-work"
_SLICES = {"slice-after-work", "constant-slice-after-work"}
_PASSING = {Category.ACTIVATION, Category.TEMPORARY, Category.WORKSPACE, Category.OTHER}


def examine(evidence: Evidence) -> Answer:
    """Every work before an interval that the files have, and what it holds."""
    works = [each for each in evidence.capture.statements if each.kind in {_UNDER_CONDITION, *_SLICES}]
    if not works:
        return Refuted("no statement computes what an interval then takes a part of")
    answers = [_of_slice(work, evidence) if work.kind in _SLICES else _of_steps(work, evidence) for work in works]
    if findings := [answer for answer in answers if isinstance(answer, Finding)]:
        return findings
    return max((answer for answer in answers if isinstance(answer, Refuted)), key=lambda answer: answer.why)


def _of_slice(work: StatementFact, evidence: Evidence) -> Finding | Refuted:
    """Work for all, of which a part is used: that of a constant such as `x[:, ::2]` only if it holds much."""
    made = [allocation for allocation in evidence.capture.allocations if _is_made_by(work, allocation)]
    saved = evidence.saved_without(made)
    is_setting = work.kind == "slice-after-work"
    if not made or (not is_notable(evidence, saved) and not is_setting):
        return Refuted(f"without all of the work at {work.at} the peak falls by {format_bytes(saved)} only")
    return _finding(
        work,
        f"`{work.used_as}` at {work.used_at} comes after the work: {work.at} does all of it, each time",
        (
            f"`{work.text}` holds up to {format_bytes(_most_at_once(made))} at once{_largest(made)}.",
            f"Without all of it the peak would be {evidence.share(saved)} lower; an interval before it leaves at most "
            "half of it.",
        ),
        Fix(
            kind="part-before-work",
            text=f"Take `{work.used_as.partition('[')[2].rstrip(']')}` of what goes in at {work.at}.",
            effect=Effect.BITWISE,
            saves_bytes=saved // 2,
        ),
    )


def _of_steps(work: StatementFact, evidence: Evidence) -> Finding | Refuted:
    """Work in every step for the result of some."""
    held = [each for each in _held_by(work, evidence) if evidence.category(each) in _PASSING]
    made = [each for each in evidence.capture.allocations if _is_made_by(work, each)]
    saved = evidence.saved_without(dict.fromkeys([*made, *held]))
    num_bytes = max(total_bytes(held), saved)
    if not is_notable(evidence, num_bytes):
        return Refuted(f"what {work.at} makes in each step holds {format_bytes(num_bytes)} at the peak")
    return _finding(
        work,
        f"`{work.name}` is made at {work.at} in every step, and used at {work.used_at} `{work.used_as}` only",
        (
            f"It and what is made for it hold {evidence.share(num_bytes)} at the peak.",
            *largest_lines(held, 2),
            f"Steps that do not use it would peak {format_bytes(saved)} lower; one that does has this peak anyhow.",
        ),
        Fix(
            kind="work-under-interval",
            text=f"Move {work.at} under the condition of {work.used_at}.",
            effect=Effect.BITWISE,
        ),
    )


def _largest(made: list[Allocation]) -> str:
    largest = max(made, key=lambda allocation: allocation.allocated_bytes)
    return f", the largest of it {largest.tensor}" if largest.tensor else ""


def _finding(work: StatementFact, title: str, sentences: tuple[str, ...], fix: Fix) -> Finding:
    return Finding(
        rule=RULE.slug,
        title=title,
        bytes=0,
        evidence=sentences,
        fixes=(fix,),
        basis=Basis.PATTERN,
        at=work.at,
        without_effect=True,
    )


def _is_made_by(work: StatementFact, allocation: Allocation) -> bool:
    """Whether a line of the work made it, and not for good."""
    file, _, line = allocation.source.rpartition(":")
    first_file, _, first = work.at.rpartition(":")
    is_there = int(first) <= int(line or 0) <= work.last_line or work.inside_first < int(line or 0) <= work.inside_last
    return file == first_file and is_there and allocation.role in (Role.UNMARKED, Role.WORKSPACE)


def _held_by(work: StatementFact, evidence: Evidence) -> Iterator[Allocation]:
    """What is alive at the peak and made by a line of the work, or held by the name of its result alone."""
    named = {
        hold.born for hold in evidence.capture.holds if hold.where == work.where and _begins_with(hold.name, work.name)
    }
    for allocation in evidence.live:
        if _is_made_by(work, allocation) or (allocation.born in named and not allocation.backward):
            yield allocation


def _begins_with(expression: str, name: str) -> bool:
    return expression == name or expression.startswith((f"{name}.", f"{name}["))


def _most_at_once(made: list[Allocation]) -> int:
    """The most that blocks of `made` hold at the same time."""
    events = sorted(
        [(each.born, each.allocated_bytes) for each in made]
        + [(each.died, -each.allocated_bytes) for each in made if each.died is not None]
    )
    level = most = 0
    for _, size in events:
        level += size
        most = max(most, level)
    return most


RULE = Rule("interval-after-work", examine, needs=(Need.OBSERVED, Need.STEPS))
