"""# Outputs are kept longer than the backward pass needs them

## What it finds
The output of the model has the hidden states or the attention maps of every layer, or logits and
copies of them have names, and the script holds them for longer than the backward pass needs them.

## Why it costs memory
`output_hidden_states=True` and `output_attentions=True` put one tensor a layer into the output. As long
as the output object lives, so do they: what autograd does not need is there in addition to the saved
activations, and all of it is still there in the next forward, next to the new ones. With fused
attention kernels there are no attention maps; asking for them makes the model write them out. Logits
over a large vocabulary can be larger than all the rest, and a loss may save another copy of them.

## Example
```python
for batch in loader:
    outputs = model(**batch, output_hidden_states=True)
    outputs.loss.backward()  # `outputs` lives on until the next forward is through
```

## Fixes
- Ask only for what is used, or take it and drop the output: `last = outputs.hidden_states[-1]`.
- `del outputs, logits` before the backward pass, or a function that returns the loss alone.

## Known misses
An output that the script does not hold when a backward pass begins or a step ends is not seen. Tensors
are known by the names of transformers: `hidden_states`, `attentions`, and those with `encoder_`,
`decoder_` or `cross_` in front.
"""

from collections.abc import Iterator, Sequence

from peaksight.diagnosis.evidence import Evidence, largest_lines, main_line, total_bytes
from peaksight.diagnosis.named_outputs import OUTPUT_NAMES, held_as, idle_in_backward, without_names
from peaksight.diagnosis.rule import Answer, Need, Refuted, Rule, is_notable
from peaksight.records import Allocation, Basis, Effect, Finding, Fix
from peaksight.units import format_bytes

NUM_NAMES = 2


def examine(evidence: Evidence) -> Answer:
    """Members of such a tuple, and named results that no backward pass needs."""
    ends = outputs_beyond_use(evidence)
    kept = tuple(ends)
    if not kept:
        return Refuted("no outputs are held beyond their use when a backward pass begins or a step ends")
    saved = evidence.saved_by_freeing(ends)
    if not is_notable(evidence, saved):
        return Refuted(f"the outputs that are held beyond their use add {format_bytes(saved)} to the peak")
    live = evidence.live_of(kept)
    return [
        Finding(
            rule=RULE.slug,
            title=f"Outputs are kept beyond their use: {format_bytes(total_bytes(live))} of them at the peak",
            bytes=saved,
            evidence=(*_names(evidence, live), *largest_lines(live)),
            fixes=(
                Fix(
                    kind="release-outputs",
                    text="Ask only for the outputs that are used, and delete them behind the backward pass.",
                    effect=Effect.BITWISE,
                    saves_bytes=saved,
                ),
            ),
            basis=Basis.LIFETIME,
            at=main_line(live),
        )
    ]


def outputs_beyond_use(evidence: Evidence) -> dict[Allocation, int]:
    """Results that the script holds, with the tick at which each could have gone."""
    return idle_in_backward(evidence) | without_names(evidence, held_as(evidence, OUTPUT_NAMES))


def _names(evidence: Evidence, live: Sequence[Allocation]) -> Iterator[str]:
    """The names of the largest, each once."""
    largest = sorted(live, key=lambda allocation: -allocation.allocated_bytes)
    holds = (hold for hold in evidence.holds_of(largest) if not hold.by_graph)
    for name in list(dict.fromkeys(f"`{hold.name}` in {hold.where}" for hold in holds))[:NUM_NAMES]:
        yield f"{name} holds one of {len(live)}"


RULE = Rule("outputs-kept", examine, needs=(Need.OBSERVED, Need.BACKWARD), refines=("graph-kept",))
