"""# Parameters, gradients and the optimizer's state are most of the peak

## What it finds
What the model itself needs in a training step, whatever the batch: its parameters, their gradients
and the state of the optimizer are more than half of the peak.

## Why it costs memory
In float32 a parameter costs 4 bytes, its gradient 4, Adam's two moments 8: 16 bytes a parameter
before the first activation. A model of 7 billion parameters needs 112 GB so, 56 GB in bfloat16.

## Example
```python
model = AutoModelForCausalLM.from_pretrained(name)  # float32 unless dtype says otherwise
optimizer = torch.optim.AdamW(model.parameters())  # two float32 copies more
```

## Fixes
- Train less: LoRA or frozen layers leave no gradients and no state for what is frozen.
- An optimizer with less state (8-bit Adam, Adafactor, SGD), or parameters in bfloat16: another
  training, most often nearly as good.
- Sharding over several cards (FSDP, ZeRO): the same up to rounding.
- A smaller batch is none: see smaller-input-no-effect.

## Known misses
Copies that are made outside of torch's modules and optimizers are told by their sizes only; see
optimizer-state-precision.
"""

from peaksight.diagnosis.evidence import Evidence, main_line, total_bytes
from peaksight.diagnosis.rule import Answer, Need, Refuted, Rule
from peaksight.records import Allocation, Basis, Category, Effect, Finding, Fix, Phase
from peaksight.units import format_bytes

_NAMES = {
    Category.PARAMETER: "parameters",
    Category.GRADIENT: "gradients",
    Category.OPTIMIZER_STATE: "optimizer state",
}
DOMINATING_SHARE = 0.5


def examine(evidence: Evidence) -> Answer:
    """The three together, and what each has."""
    of_run = [a for a in evidence.capture.allocations if evidence.category(a) in _NAMES or _is_of_step(evidence, a)]
    held = {of: total_bytes(a for a in evidence.live if evidence.category(a) is of) for of in _NAMES}
    in_all = sum(held.values())
    if in_all < DOMINATING_SHARE * evidence.peak_bytes:
        return Refuted(f"parameters, gradients and optimizer state hold {evidence.share(in_all)}")
    return [
        Finding(
            rule=RULE.slug,
            title=f"Parameters, gradients and optimizer state hold {evidence.share(in_all)}",
            bytes=evidence.saved_without(of_run),
            evidence=(
                ", ".join(f"{name} {format_bytes(held[of])}" for of, name in _NAMES.items()),
                *_kinds(evidence),
                *_temporaries(evidence),
            ),
            fixes=(_less_trained(held), _less_state(held)),
            basis=Basis.LIFETIME,
            at=main_line(a for a in evidence.live if evidence.category(a) in _NAMES),
        )
    ]


def _is_of_step(evidence: Evidence, allocation: Allocation) -> bool:
    """Whether it is a temporary of the optimizer, which has none without its parameters."""
    return allocation.phase is Phase.OPTIMIZER and evidence.category(allocation) is Category.TEMPORARY


def _temporaries(evidence: Evidence) -> tuple[str, ...]:
    held = total_bytes(a for a in evidence.live if _is_of_step(evidence, a))
    return (f"the optimizer's step has {format_bytes(held)} of temporaries beside them",) if held else ()


def _kinds(evidence: Evidence) -> tuple[str, ...]:
    """`AdamW keeps 8.00 GiB in float32 for 4.00 GiB of float32 parameters`."""
    return tuple(
        f"{row.kind} keeps {format_bytes(row.state_bytes)} in {row.state_dtype} "
        f"for {format_bytes(row.parameter_bytes)} of {row.dtype} parameters"
        for row in evidence.capture.optimizers
        if row.state_bytes
    )


def _less_trained(held: dict[Category, int]) -> Fix:
    trained = held[Category.GRADIENT] + held[Category.OPTIMIZER_STATE]
    text = f"Train fewer parameters (LoRA): of {format_bytes(trained)} of gradients and state little stays."
    return Fix(kind="lora", text=text, effect=Effect.MODEL)


def _less_state(held: dict[Category, int]) -> Fix:
    text = (
        f"An optimizer with less than {format_bytes(held[Category.OPTIMIZER_STATE])} of state, or FSDP over more cards."
    )
    return Fix(kind="smaller-state", text=text, effect=Effect.NOISE)


RULE = Rule("model-state", examine, needs=(Need.STEPS,), is_general=True)
