"""# Temporaries of the optimizer are the peak

## What it finds
The peak is in the optimizer's step, and what it holds there beside parameters, gradients and state
are temporaries of the step itself.

## Why it costs memory
PyTorch's default on a card is the `foreach` implementation: it computes with lists of all tensors at
once, so that each intermediate result is there for every parameter at the same time. For Adam that is
another copy of the parameters, or more where they are not of one dtype. The loop over single
parameters holds the temporaries of one only; a `fused` kernel has none.

## Example
```python
torch.optim.AdamW(model.parameters())  # foreach: one more copy of the model in each step
torch.optim.AdamW(model.parameters(), fused=True)  # none
```

## Fixes
- `fused=True`, where the optimizer has it: the same up to rounding, and faster.
- `foreach=False`: the same up to rounding, slower for models of many small tensors.

## Known misses
Of torch's own loop the temporaries are those of the largest parameter, and count as model-state. An
optimizer of its own that calls kernels outside of PyTorch allocates what only that kernel knows.
"""

from peaksight.diagnosis.evidence import Evidence, largest_lines, main_line, total_bytes
from peaksight.diagnosis.rule import Answer, Need, Refuted, Rule, is_notable
from peaksight.records import Basis, Category, Effect, Finding, Fix, Phase
from peaksight.units import format_bytes

# The optimizers of torch.optim that have a fused kernel on a card.
HAVE_FUSED = {"Adam", "AdamW", "SGD", "Adagrad"}
_OF_MODEL = {Category.PARAMETER, Category.GRADIENT, Category.OPTIMIZER_STATE}
# Those with a loop over single parameters beside `foreach`.
HAVE_LOOP = HAVE_FUSED | {"Adadelta", "Adamax", "ASGD", "NAdam", "RAdam", "RMSprop", "Rprop"}


def examine(evidence: Evidence) -> Answer:
    """Temporaries born in an optimizer's step and alive at the peak."""
    if evidence.peak_phase is not Phase.OPTIMIZER:
        return Refuted(f"the peak is in the {evidence.peak_phase}, not in the optimizer's step")
    if looping := _looping(evidence):
        return Refuted(
            f"{looping} goes through the parameters one by one: what it holds is of one of them, see model-state"
        )
    held = [a for a in evidence.live if a.phase is Phase.OPTIMIZER and evidence.category(a) is Category.TEMPORARY]
    born_in_step = [a for a in evidence.capture.allocations if a.phase is Phase.OPTIMIZER]
    temporaries = [a for a in born_in_step if evidence.category(a) is Category.TEMPORARY]
    saved = evidence.saved_without(temporaries)
    if not is_notable(evidence, saved):
        return Refuted(f"without the temporaries of the optimizer the peak falls by {format_bytes(saved)} only")
    return [
        Finding(
            rule=RULE.slug,
            title=f"The optimizer's step makes the peak: {format_bytes(total_bytes(held))} of temporaries on top of "
            f"{format_bytes(_state_bytes(evidence))} of parameters, gradients and optimizer state",
            bytes=saved,
            evidence=(*largest_lines(held, 2), *_implementations(evidence)),
            fixes=_fixes(evidence, saved),
            basis=Basis.LIFETIME,
            at=main_line(held),
        )
    ]


def _looping(evidence: Evidence) -> str:
    """The optimizers' class where all of them are torch's own loop, which holds temporaries of one parameter."""
    rows = [fact for fact in evidence.capture.optimizers if fact.count]
    if not rows or any(row.how != "for-loop" or row.kind not in HAVE_LOOP for row in rows):
        return ""
    return rows[0].kind


def _state_bytes(evidence: Evidence) -> int:
    return total_bytes(a for a in evidence.live if evidence.category(a) in _OF_MODEL)


def _implementations(evidence: Evidence) -> tuple[str, ...]:
    kinds = {(fact.kind, fact.how) for fact in evidence.capture.optimizers}
    return tuple(f"{kind} runs as {how}" for kind, how in sorted(kinds))


def _fixes(evidence: Evidence, saved: int) -> tuple[Fix, ...]:
    kinds = {fact.kind for fact in evidence.capture.optimizers}
    loop = Fix(kind="for-loop-optimizer", text="foreach=False", effect=Effect.ROUNDING, saves_bytes=None)
    if not kinds or not kinds <= HAVE_FUSED:
        return (loop,)
    return Fix(kind="fused-optimizer", text="fused=True", effect=Effect.ROUNDING, saves_bytes=saved), loop


RULE = Rule("optimizer-temporaries", examine, needs=(Need.STEPS,))
