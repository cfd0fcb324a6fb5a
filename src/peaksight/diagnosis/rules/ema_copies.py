"""# A second copy of the model is on the card

## What it finds
Parameters that are there twice: copies that are made of them before the first forward, or a second
model of the same class and shapes of which no parameter has a gradient. An average of the weights
(EMA), a teacher, a target network, a reference model.

## Why it costs memory
The copy is as large as the parameters, all the time, whether it is used in every step or once an hour.

## Example
```python
ema = torch.optim.swa_utils.AveragedModel(model)  # on the card of `model`
ema = torch.optim.swa_utils.AveragedModel(model, device="cpu")
```

## Fixes
- Keep the copy on the host and bring it in when it is used: bitwise the same training, slower. One in
  a lower precision is smaller and other numbers.
- With adapters (LoRA) the reference model is the model with its adapters off: no copy.

## Known misses
A second model with other shapes is no copy, and told by model-state. Copies that are made later are
told by save-copies.
"""

from collections import Counter
from collections.abc import Iterator

from peaksight.diagnosis.copied_state import copies_of_state
from peaksight.diagnosis.evidence import Evidence, largest_lines, main_line, total_bytes
from peaksight.diagnosis.rule import Answer, Need, Refuted, Rule, is_notable
from peaksight.records import Allocation, Basis, Effect, Finding, Fix, Phase, Role
from peaksight.units import format_bytes


def examine(evidence: Evidence) -> Answer:
    """Copies by their origin, and twins by their places and shapes."""
    copies = {copy for copy, original in copies_of_state(evidence) if _is_of_the_model(copy, original)}
    twins = set(_twins(evidence))
    found = copies | twins
    saved = evidence.saved_without(found)
    if not is_notable(evidence, saved):
        return Refuted(f"copies of parameters hold {format_bytes(total_bytes(found))}")
    held = [allocation for allocation in evidence.live if allocation in found]
    parameters = [a for a in evidence.live if a.role is Role.PARAMETER and a not in found]
    return [
        Finding(
            rule=RULE.slug,
            title=f"A second copy of parameters is on the card: {format_bytes(total_bytes(held))}",
            bytes=saved,
            evidence=(
                *largest_lines(held, 2),
                f"the other parameters are {format_bytes(total_bytes(parameters))}; the copies have no gradients",
            ),
            fixes=(
                Fix(
                    kind="copy-to-host",
                    text="Keep the copy on the host, and move it to the card where it is used.",
                    effect=Effect.BITWISE,
                    saves_bytes=saved,
                ),
            ),
            basis=Basis.LIFETIME,
            at=main_line(held),
        )
    ]


def _is_of_the_model(copy: Allocation, original: Allocation) -> bool:
    return copy.phase is Phase.INIT and original.role is Role.PARAMETER


def _twins(evidence: Evidence) -> Iterator[Allocation]:
    """Parameters at the end of the first step beyond as many as have gradients, of those of which some have one."""
    end = next(peaks.last_tick for peaks in evidence.capture.steps if peaks.complete)
    alive = evidence.alive(end)
    gradients = Counter(_place(a) for a in alive if a.role is Role.GRADIENT)
    parameters = Counter(_place(a) for a in alive if a.role is Role.PARAMETER)
    spare = {place: count - gradients[place] for place, count in parameters.items() if gradients[place]}
    if not _is_same_model(alive, spare):
        return
    for allocation in reversed(alive):
        if allocation.role is Role.PARAMETER and allocation.module and spare.get(_place(allocation), 0) > 0:
            spare[_place(allocation)] -= 1
            yield allocation


def _is_same_model(alive: tuple[Allocation, ...], spare: dict[tuple[str, str], int]) -> bool:
    """Whether the classes of models with spare parameters have hardly any that are in no place of another."""
    roots = {module.partition(".")[0] for (module, _), count in spare.items() if count > 0}
    of_roots = [a for a in alive if a.role is Role.PARAMETER and a.module.partition(".")[0] in roots]
    return 10 * total_bytes(a for a in of_roots if _place(a) not in spare) < total_bytes(of_roots)


def _place(allocation: Allocation) -> tuple[str, str]:
    return allocation.module, allocation.tensor


RULE = Rule("ema-copies", examine, needs=(Need.OBSERVED, Need.STEPS))
