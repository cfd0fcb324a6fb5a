"""# A checkpoint that was loaded stays on the card

## What it finds
A dictionary of tensors with the shapes of the model's parameters is on the card beside the model, and a
variable of the script still leads to it.

## Why it costs memory
`torch.load(path)` puts tensors back where they were saved from, or where `map_location` says: on the
card, before the model takes copies of them. As long as the dictionary has a name, the weights are there
twice, and with the optimizer's state in it that is too. Every process of a job that loads without
`map_location` puts its copy on the first card.

## Example
```python
checkpoint = torch.load(path, map_location="cuda")
model.load_state_dict(checkpoint["model"])  # `checkpoint` lives on through the training
checkpoint = torch.load(path, map_location="cpu", mmap=True)  # nothing of it on the card
```

## Fixes
- `map_location="cpu"`, or `del checkpoint` once it is loaded: bitwise the same.

## Known misses
A dictionary that no variable of the running functions leads to, or that was loaded by a library and let
go. What another process puts on this card is not seen.
"""

from collections import Counter

from peaksight.diagnosis.evidence import Evidence, largest_lines, main_line, total_bytes
from peaksight.diagnosis.rule import Answer, Need, Refuted, Rule, is_notable
from peaksight.records import Allocation, Basis, Effect, Finding, Fix, Role
from peaksight.units import format_bytes

# Fewer of the parameters' bytes than this are no checkpoint of the model.
PART_OF_MODEL = 0.5
_STATE = {Role.PARAMETER, Role.BUFFER, Role.OPTIMIZER_STATE}
_LOADED = {Role.INPUT, Role.UNMARKED}


def examine(evidence: Evidence) -> Answer:
    """Members of dictionaries, alive at the peak, that look like the model's state."""
    held = _like_state(evidence)
    parameters = total_bytes(a for a in evidence.live if a.role is Role.PARAMETER)
    if total_bytes(held) < PART_OF_MODEL * parameters or not held:
        return Refuted(f"dictionaries hold {format_bytes(total_bytes(held))} that look like state of the model")
    saved = evidence.saved_without(held)
    if not is_notable(evidence, saved):
        return Refuted(f"without what was loaded the peak falls by {format_bytes(saved)}")
    hold = evidence.holds[max(held, key=lambda allocation: allocation.allocated_bytes).born][-1]
    return [
        Finding(
            rule=RULE.slug,
            title=f"Loaded weights stay on the card beside the model: {format_bytes(total_bytes(held))}",
            bytes=saved,
            evidence=(f"`{hold.name}` in {hold.where} is one of {len(held)} tensors", *largest_lines(held)),
            fixes=(
                Fix(
                    kind="load-on-host",
                    text="torch.load(..., map_location='cpu'), or delete what was loaded once the model has it.",
                    effect=Effect.BITWISE,
                    saves_bytes=saved,
                ),
            ),
            basis=Basis.PATTERN,
            at=main_line(held),
        )
    ]


def _like_state(evidence: Evidence) -> list[Allocation]:
    """What dictionaries hold of the shapes of the state, each shape as often as the state has it."""
    wanted = Counter(allocation.tensor for allocation in evidence.live if allocation.role in _STATE)
    found = []
    for allocation in evidence.live:
        if allocation.role in _LOADED and wanted[allocation.tensor] > 0 and _is_in_dictionary(evidence, allocation):
            wanted[allocation.tensor] -= 1
            found.append(allocation)
    return found


def _is_in_dictionary(evidence: Evidence, allocation: Allocation) -> bool:
    """Whether its last name ends in a key: `checkpoint['model']['head.weight']`."""
    holds = evidence.holds.get(allocation.born, ())
    return bool(holds) and not holds[-1].by_graph and holds[-1].name.endswith("']")


RULE = Rule("load-copies", examine, needs=(Need.OBSERVED,))
