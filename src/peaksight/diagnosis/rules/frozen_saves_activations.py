"""# Frozen modules save activations

## What it finds
Modules whose parameters are all frozen, and that still save tensors for the backward: a gradient
flows through them to something trained below.

## Why it costs memory
`requires_grad_(False)` spares gradients and optimizer state. It does not spare what the backward
through a module needs: to reach a trained prompt, adapter or encoder below, autograd goes through
every activation, norm and attention above, and keeps what these need. Frozen modules at the bottom,
with nothing trained before them, save nothing.

## Example
```python
model.requires_grad_(False)
prompt = nn.Parameter(...)  # trained: every layer of the frozen model saves for it
loss = model(inputs_embeds=torch.cat([prompt, embeddings])).loss
```

## Fixes
- Checkpoint the frozen blocks: bitwise the same. transformers' does nothing in `eval()`.
- `no_grad` around frozen modules, where nothing below is trained: other training where something is.

## Known misses
A module is frozen if all parameters in it and in its block (`layers.3`) are. Blocks with adapters, as
LoRA's, train: what is saved in them is told by activations.
"""

from collections.abc import Mapping

from peaksight.diagnosis.evidence import Evidence, largest_lines, main_line, total_bytes
from peaksight.diagnosis.input_dependent import saved_in_own_step
from peaksight.diagnosis.module_blocks import block_of
from peaksight.diagnosis.rule import Answer, Need, Refuted, Rule, is_notable
from peaksight.records import Allocation, Basis, Capture, Effect, Finding, Fix
from peaksight.units import format_bytes


def examine(evidence: Evidence) -> Answer:
    """Activations in frozen modules, of every step."""
    frozen = frozen_subtrees(evidence.capture)
    if not any(frozen.values()):
        return Refuted("no module has all of its parameters frozen")
    saved = [a for a in evidence.capture.allocations if _is_saved(evidence, a) and _is_frozen_with_block(a, frozen)]
    falls = evidence.saved_without(saved)
    if not is_notable(evidence, falls):
        return Refuted(f"without what frozen modules save the peak falls by {format_bytes(falls)} only")
    of_run = frozenset(saved)
    held = [a for a in evidence.live if a in of_run]
    return [
        Finding(
            rule=RULE.slug,
            title=f"Frozen modules save {format_bytes(total_bytes(held))} for a gradient that flows through them",
            bytes=falls,
            evidence=(*largest_lines(held), _largest_module(held)),
            fixes=(Fix(kind="activation-checkpointing", text="Checkpoint the frozen blocks.", effect=Effect.BITWISE),),
            basis=Basis.LIFETIME,
            at=main_line(held),
        )
    ]


def frozen_subtrees(capture: Capture) -> Mapping[str, bool]:
    """For each path that has parameters below it, whether all of them are frozen."""
    frozen: dict[str, bool] = {}
    for fact in capture.modules:
        if fact.parameter_bytes:
            names = fact.module.split(".")
            for depth in range(1, len(names) + 1):
                path = ".".join(names[:depth])
                frozen[path] = frozen.get(path, True) and fact.frozen_bytes == fact.parameter_bytes
    return frozen


def is_in_frozen(module: str, frozen: Mapping[str, bool]) -> bool:
    """Whether the nearest module with parameters, `module` or around it, has frozen ones alone."""
    while module and module not in frozen:
        module = module.rpartition(".")[0]
    return frozen.get(module, False)


def _is_frozen_with_block(allocation: Allocation, frozen: Mapping[str, bool]) -> bool:
    """Whether its module is frozen, and the whole block that it is in: beside an adapter it saves for that one."""
    block = block_of(allocation.module)
    return is_in_frozen(allocation.module, frozen) and (not block or is_in_frozen(block, frozen))


def _is_saved(evidence: Evidence, allocation: Allocation) -> bool:
    return bool(allocation.saved_by) and saved_in_own_step(evidence, allocation)


def _largest_module(held: list[Allocation]) -> str:
    sizes: dict[str, int] = {}
    for allocation in held:
        sizes[allocation.module] = sizes.get(allocation.module, 0) + allocation.allocated_bytes
    largest = max(sizes, key=lambda module: (sizes[module], module), default="")
    return f"{len(sizes)} modules save; the most is in {largest}: {format_bytes(sizes.get(largest, 0))}"


RULE = Rule("frozen-saves-activations", examine, needs=(Need.OBSERVED, Need.STEPS, Need.BACKWARD))
