"""# Checkpointing that is asked for, and does not happen

## What it finds
- A module has a flag by which it is told to checkpoint, runs with autograd recording, and nothing in
  it was checkpointed: it is in `eval()`, where most libraries leave checkpointing out, or its forward
  never reads the flag.
- A statement asks for checkpointing (`model.gradient_checkpointing_enable()`), and no module that
  trains was checkpointed: it was another model, or was undone since.
- A reentrant checkpoint has no input that needs a gradient: autograd does not see it, and the
  parameters inside get no gradient at all.

## Why it costs memory
Without checkpointing, every activation of the forward stays for the backward. No error is raised, and
the flag says that it is on.

## Example
```python
model.gradient_checkpointing_enable()
model.eval()  # frozen, so why not: but now nothing is checkpointed
```

## Fixes
- `model.train()`, with dropout set to zero where the model is frozen: bitwise the same without dropout.
- `use_reentrant=False`, or `model.enable_input_require_grads()`: with them the parameters inside are
  trained, which they were not.

## Known misses
The flags and the statements that are known are listed in
`virtual_gpu/evidence/patterns.py`; a model that has the flag under another name is not seen.
"""

from collections import defaultdict
from collections.abc import Iterator, Sequence

from peaksight.diagnosis.evidence import Evidence, total_bytes
from peaksight.diagnosis.module_blocks import block_of
from peaksight.diagnosis.rule import Answer, Need, Refuted, Rule
from peaksight.records import Allocation, Basis, Category, CheckpointFact, CheckpointFlagFact, Effect, Finding, Fix
from peaksight.units import format_bytes


def examine(evidence: Evidence) -> Answer:
    """What asks for checkpointing, against the calls of torch.utils.checkpoint."""
    capture = evidence.capture
    calls = [call for call in capture.checkpoints if call.grad_enabled]
    flags = [flag for flag in capture.checkpoint_flags if flag.num_calls_with_grad]
    asked = [each for each in capture.statements if each.kind == "checkpointing" and each.num_runs != 0]
    findings = [*_unseen_by_autograd(calls, evidence), *_unread(flags, asked_at(evidence), evidence)]
    if findings:
        return findings
    if asked and not calls:
        return [_of_nothing(evidence)]
    if calls:
        num_regions = sum(call.step == calls[-1].step for call in calls)
        return Refuted(f"{num_regions} call{'s' * (num_regions > 1)} a step of torch.utils.checkpoint with gradients")
    return Refuted("nothing asks for checkpointing")


def asked_at(evidence: Evidence) -> str:
    """The line that asks for checkpointing, empty where none is known."""
    asked = [each for each in evidence.capture.statements if each.kind == "checkpointing" and each.num_runs != 0]
    return asked[-1].at if asked else ""


def _unseen_by_autograd(calls: Sequence[CheckpointFact], evidence: Evidence) -> Iterator[Finding]:
    """Reentrant regions without an input that needs a gradient, around parameters that are to be trained."""
    unseen = [call for call in calls if call.reentrant and not call.input_needs_grad]
    for at in dict.fromkeys(call.at for call in unseen):
        modules = {call.module for call in unseen if call.at == at}
        trained = sum(
            fact.parameter_bytes - fact.frozen_bytes
            for fact in evidence.capture.modules
            if any(_is_in(fact.module, module) for module in modules)
        )
        if trained:
            yield _finding(
                f"The reentrant checkpoint at {at} is not seen by autograd: none of its inputs needs a gradient",
                at,
                (
                    f"{format_bytes(trained)} of parameters in {_names(modules)} need a gradient and get none.",
                    "What is run inside is never run again: it saves nothing, and trains nothing.",
                ),
                "use_reentrant=False, or model.enable_input_require_grads().",
                Effect.MODEL,
            )


def _unread(flags: Sequence[CheckpointFlagFact], at: str, evidence: Evidence) -> Iterator[Finding]:
    """Flagged modules in which nothing was checkpointed, by the model that they are part of."""
    models: dict[str, list[CheckpointFlagFact]] = defaultdict(list)
    for flag in flags:
        models[flag.module.partition(".")[0]].append(flag)
    for model, members in models.items():
        if not any(flag.num_checkpoints for flag in members):
            yield _of_flags(model, members, at, evidence)


def _of_flags(model: str, flags: Sequence[CheckpointFlagFact], at: str, evidence: Evidence) -> Finding:
    in_eval = [flag for flag in flags if not flag.training]
    saved = _saved_in([flag.module for flag in flags], evidence)
    first = (in_eval or flags)[0]
    why = f"{first.kind} is in eval()" if in_eval else f"the forward of {first.kind} does not do it"
    return _finding(
        f"Checkpointing of {model} is asked for and not active: {why}",
        at,
        (
            f"`{first.flag}` is True on {_names({flag.module for flag in flags})}, which ran with gradients, and "
            "nothing in it was checkpointed.",
            f"Its activations hold {evidence.share(total_bytes(saved))} at the peak.",
        ),
        f"{model}.train(), with dropout 0 where it is frozen." if in_eval else "Call torch.utils.checkpoint there.",
        Effect.BITWISE,
        _estimate(saved, evidence),
    )


def _of_nothing(evidence: Evidence) -> Finding:
    at = asked_at(evidence)
    held = [a for a in evidence.live if evidence.category(a) is Category.ACTIVATION]
    return _finding(
        f"Checkpointing is asked for at {at}, and nothing was checkpointed",
        at,
        (
            "No module that ran with gradients called torch.utils.checkpoint.",
            f"Activations hold {evidence.share(total_bytes(held))} at the peak.",
        ),
        "Ask the model that trains for it, after it has its last form, and keep it in train().",
        Effect.BITWISE,
    )


def _finding(
    title: str, at: str, sentences: tuple[str, ...], fix: str, effect: Effect, saves_bytes: int | None = None
) -> Finding:
    return Finding(
        rule=RULE.slug,
        title=title,
        bytes=0,
        evidence=sentences,
        fixes=(Fix(kind="activate-checkpointing", text=fix, effect=effect, saves_bytes=saves_bytes),),
        basis=Basis.PATTERN,
        at=at,
        without_effect=True,
    )


def _saved_in(modules: Sequence[str], evidence: Evidence) -> list[Allocation]:
    """The activations in `modules` that are alive at the peak."""
    return [
        allocation
        for allocation in evidence.live
        if evidence.category(allocation) is Category.ACTIVATION
        and any(_is_in(allocation.module, module) for module in modules)
    ]


def _estimate(saved: Sequence[Allocation], evidence: Evidence) -> int | None:
    """By how much the peak would fall if of the numbered blocks that saved it only the largest were there at a time.

    None where they are not at least two. In each step the same is taken away.
    """
    sizes: dict[str, int] = defaultdict(int)
    for allocation in saved:
        sizes[block_of(allocation.module)] += allocation.allocated_bytes
    sizes.pop("", None)
    if len(sizes) < 2:
        return None
    largest = max(sizes, key=lambda block: sizes[block])
    gone = sizes.keys() - {largest}
    return evidence.saved_without(
        allocation
        for allocation in evidence.capture.allocations
        if block_of(allocation.module) in gone and evidence.category(allocation) is Category.ACTIVATION
    )


def _is_in(module: str, parent: str) -> bool:
    return module == parent or module.startswith(f"{parent}.")


def _names(modules: set[str]) -> str:
    first, *others = sorted(modules)
    return f"{first} and {len(others)} more" if others else first


RULE = Rule("checkpointing-inactive", examine, needs=(Need.OBSERVED, Need.BACKWARD))
