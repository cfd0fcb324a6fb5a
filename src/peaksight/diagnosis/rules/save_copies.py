"""# Saving copies the model on the card

## What it finds
Copies of parameters, buffers or the optimizer's state that are made on the card after training began,
outside of any forward: a state that is cloned before it is saved, the best one so far, a model that is
copied with `deepcopy`.

## Why it costs memory
A copy of the model is as large as the model. If the last copy is kept until the next one is made, two
of them are there beside it at that moment, on top of whatever else is alive between steps.

## Example
```python
best = copy.deepcopy(model.state_dict())  # on the card, and the one before is still `best`

best = {name: tensor.cpu() for name, tensor in model.state_dict().items()}
```

## Fixes
- Copy to the host: `tensor.cpu()`, or save to a file. Bitwise the same training.

## Known misses
Copies that are made before the first forward are told by ema-copies, and a state that is gathered from
other ranks is not simulated.
"""

from peaksight.diagnosis.copied_state import copies_of_state
from peaksight.diagnosis.evidence import Evidence, largest_lines, main_line, total_bytes
from peaksight.diagnosis.rule import Answer, Need, Refuted, Rule, is_notable
from peaksight.records import Basis, Effect, Finding, Fix, Phase
from peaksight.units import format_bytes


def examine(evidence: Evidence) -> Answer:
    """Copies of the state that are made in training."""
    copies = [copy for copy, _ in copies_of_state(evidence) if copy.phase is not Phase.INIT]
    if not copies:
        return Refuted("nothing copies parameters or states on the card once training has begun")
    saved = evidence.saved_without(copies)
    if not is_notable(evidence, saved):
        return Refuted(f"without {len(copies)} copies of the state the peak falls by {format_bytes(saved)} only")
    copied = set(copies)
    held = [allocation for allocation in evidence.live if allocation in copied]
    return [
        Finding(
            rule=RULE.slug,
            title=f"Copies of the model's state are on the card: {format_bytes(total_bytes(held))} at the peak",
            bytes=saved,
            evidence=(
                *largest_lines(held),
                f"{len(copies)} copies are made outside of forwards, of {format_bytes(total_bytes(copies))} in the run",
            ),
            fixes=(
                Fix(
                    kind="copy-to-host",
                    text="Copy to the host (tensor.cpu()), or write a file, instead of cloning on the card.",
                    effect=Effect.BITWISE,
                    saves_bytes=saved,
                ),
            ),
            basis=Basis.LIFETIME,
            at=main_line(held),
        )
    ]


RULE = Rule("save-copies", examine, needs=(Need.OBSERVED, Need.STEPS))
