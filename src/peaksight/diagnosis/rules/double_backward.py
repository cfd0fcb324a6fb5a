"""# A backward pass records a graph of its own

## What it finds
Blocks that a backward pass with `create_graph=True` made while autograd recorded it: those that a
second pass needs, for a gradient penalty, a Hessian product, or an inner loop of meta-learning.

## Why it costs memory
The first backward pass frees nothing of the forward, for the second goes through it again, and every
gradient on the way is an activation itself. The peak is about that of a network twice as deep.

## Example
```python
(gradient,) = torch.autograd.grad(score.sum(), x, create_graph=True)
penalty = ((gradient.norm(2, dim=1) - 1) ** 2).mean()
penalty.backward()
```

## Fixes
- No `create_graph=True` where no gradient is differentiated: bitwise the same.
- Where one is: the penalty on a part of the batch or in every k-th step, or first-order
  meta-learning. That is another training.

## Known misses
What the forward keeps for longer because of it is not counted.
"""

from peaksight.diagnosis.evidence import Evidence, largest_lines, main_line, total_bytes
from peaksight.diagnosis.rule import Answer, Need, Refuted, Rule, is_notable
from peaksight.records import Allocation, BackwardFact, Basis, Effect, Finding, Fix, Phase, Role
from peaksight.units import format_bytes


def examine(evidence: Evidence) -> Answer:
    """What passes that record themselves leave for another one."""
    passes = [fact for fact in evidence.capture.backwards if fact.creates_graph]
    if not passes:
        return Refuted("no backward pass was asked to create a graph")
    made = _made_by(evidence, passes)
    saved = evidence.saved_without(made)
    if not is_notable(evidence, saved):
        return Refuted(f"without the graphs of backward passes the peak falls by {format_bytes(saved)} only")
    held = [allocation for allocation in evidence.live if allocation in made]
    lines = sorted({fact.at for fact in passes})
    return [
        Finding(
            rule=RULE.slug,
            title=f"Backward passes record a graph of their own, which holds {format_bytes(total_bytes(held))}",
            bytes=saved,
            evidence=(f"create_graph=True at {', '.join(lines)}", *largest_lines(held)),
            fixes=(
                Fix(
                    kind="first-order",
                    text="Leave create_graph=True out where nothing differentiates the gradient, or use it less often.",
                    effect=Effect.MODEL,
                    saves_bytes=saved,
                ),
            ),
            basis=Basis.LIFETIME,
            at=main_line(held),
        )
    ]


def _made_by(evidence: Evidence, passes: list[BackwardFact]) -> set[Allocation]:
    """What autograd recorded in `passes` and was there when they were over."""
    ends = evidence.pass_ends
    born = (
        (allocation, ends[fact.number])
        for fact in passes
        for allocation in evidence.born_between(fact.tick + 1, ends[fact.number] + 1)
    )
    return {a for a, end in born if _is_recorded(a) and (a.died is None or a.died > end)}


def _is_recorded(allocation: Allocation) -> bool:
    """Whether a node saves it: the gradients that the pass gives, as those of `torch.func.grad`, are there anyway."""
    is_made = allocation.phase is Phase.BACKWARD and allocation.grad_enabled and allocation.role is Role.UNMARKED
    return is_made and bool(allocation.saved_by)


RULE = Rule("double-backward", examine, needs=(Need.OBSERVED, Need.BACKWARD))
