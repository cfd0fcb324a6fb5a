"""# Checkpointing that covers everything at once

## What it finds
One call of `torch.utils.checkpoint` contains most of what the backward pass runs again, as
`checkpoint(model, x)` does, so that at the peak all of its activations are there.

## Why it costs memory
A checkpointed region saves its inputs only, and is run again when the backward pass comes to it. From
then on its activations are alive until the pass is through the region. With a single region that is
all of them, as without checkpointing: the peak moves from the forward into the backward, and a whole
forward is added. With k regions of one size, the k-th part of them is alive at a time.

## Example
```python
hidden = checkpoint(model.encoder, x, use_reentrant=False)  # all layers again, and at once

for layer in model.encoder.layers:  # one layer at a time
    x = checkpoint(layer, x, use_reentrant=False)
```

## Fixes
- One region for each block or layer, or `checkpoint_sequential(layers, segments, x)`: bitwise the
  same, and not slower, since everything was already run twice.

## Known misses
The estimate is for two halves: with more regions the peak falls further. It does not know whether the
code can be cut in the middle.
"""

from collections.abc import Iterator, Sequence

from peaksight.attribution.live_set import is_alive
from peaksight.diagnosis.evidence import Evidence, largest_lines, total_bytes
from peaksight.diagnosis.rule import Answer, Need, Refuted, Rule, is_notable
from peaksight.records import Allocation, Basis, CheckpointFact, Effect, Finding, Fix
from peaksight.units import format_bytes

# A region that holds less than this part of what its step runs again is one of several.
DOMINANT_SHARE = 0.6


def examine(evidence: Evidence) -> Answer:
    """The region of the peak's step that held most when it had been run again."""
    calls = [call for call in evidence.capture.checkpoints if call.recomputed_to]
    regions = {call: _held(call, evidence) for call in calls if call.step == evidence.peak_step}
    if not regions:
        return Refuted("nothing that is checkpointed is run again in the step of the peak")
    largest = max(regions, key=lambda call: total_bytes(regions[call]))
    held, all_held = total_bytes(regions[largest]), sum(map(total_bytes, regions.values()))
    if held < DOMINANT_SHARE * all_held:
        return Refuted(f"{len(regions)} regions are run again, of which the largest holds {format_bytes(held)}")
    saved = evidence.saved_without(_halves(_alike(largest, calls), evidence))
    if not is_notable(evidence, saved):
        return Refuted(f"with two regions instead of one the peak falls by {format_bytes(saved)} only")
    return [_finding(largest, regions[largest], saved, evidence)]


def _held(call: CheckpointFact, evidence: Evidence) -> tuple[Allocation, ...]:
    """What was alive of the region right after it was run again, in order of birth."""
    end = call.recomputed_to
    born = evidence.born_between(call.recomputed_from + 1, end + 1)
    return tuple(allocation for allocation in born if is_alive(allocation, end))


def _alike(call: CheckpointFact, calls: Sequence[CheckpointFact]) -> list[CheckpointFact]:
    return [each for each in calls if (each.at, each.module) == (call.at, call.module)]


def _halves(calls: Sequence[CheckpointFact], evidence: Evidence) -> Iterator[Allocation]:
    """Of each region what comes first in it, up to half of its bytes: not there while the other half is."""
    for call in calls:
        held = _held(call, evidence)
        left = total_bytes(held) // 2
        for allocation in held:
            left -= allocation.allocated_bytes
            if left >= 0:
                yield allocation


def _finding(call: CheckpointFact, held: tuple[Allocation, ...], saved: int, evidence: Evidence) -> Finding:
    alive = [each for each in held if each.died is None or each.died > evidence.capture.peak_tick]
    return Finding(
        rule=RULE.slug,
        title=f"Checkpointing at {call.at} covers everything at once: its one region holds "
        f"{format_bytes(total_bytes(held))} when it is run again",
        bytes=0,
        evidence=(
            f"{call.module or 'The function'} is run again as a whole, and {evidence.share(total_bytes(alive))} "
            f"of it are alive at the peak, in the {evidence.peak_phase}.",
            *largest_lines(alive, 2),
            f"Two regions of one size would have the peak {format_bytes(saved)} lower, more regions yet lower.",
        ),
        fixes=(
            Fix(
                kind="checkpoint-regions",
                text="Checkpoint each block or layer on its own (or checkpoint_sequential).",
                effect=Effect.BITWISE,
                saves_bytes=saved,
            ),
        ),
        basis=Basis.LIFETIME,
        at=call.at,
        without_effect=True,
    )


RULE = Rule("checkpointing-one-region", examine, needs=(Need.OBSERVED, Need.BACKWARD))
