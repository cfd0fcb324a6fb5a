"""# Hidden states or attentions are returned and kept

## What it finds
The output of the model has the hidden states or the attention maps of every layer, and the script
holds it for longer than the backward pass needs them.

## Why it costs memory
`output_hidden_states=True` and `output_attentions=True` put one tensor a layer into the output. As long
as the output object lives, so do they: what autograd does not need is there in addition to the saved
activations, and all of it is still there in the next forward, next to the new ones. With fused
attention kernels there are no attention maps; asking for them makes the model write them out.

## Example
```python
for batch in loader:
    outputs = model(**batch, output_hidden_states=True)
    outputs.loss.backward()  # `outputs` lives on until the next forward is through
```

## Fixes
- Ask only for what is used, or take it and drop the output: `last = outputs.hidden_states[-1]`.
- `del outputs` behind the backward pass.

## Known misses
An output that the script does not hold when a backward pass begins or a step ends is not seen. Tensors
are known by the names of transformers: `hidden_states`, `attentions`, and those with `encoder_`,
`decoder_` or `cross_` in front.
"""

from peaksight.diagnosis.evidence import Evidence, largest_lines, main_line, total_bytes
from peaksight.diagnosis.named_outputs import held_as, without_names
from peaksight.diagnosis.rule import NOTABLE_SHARE, Answer, Need, Refuted, Rule
from peaksight.records import Basis, Effect, Finding, Fix
from peaksight.units import format_bytes

# What transformers calls the tensors of all layers in its outputs.
NAMES = r"\b(\w+_)?(hidden_states|attentions)\["


def examine(evidence: Evidence) -> Answer:
    """Blocks that are members of such a tuple."""
    kept = held_as(evidence, NAMES)
    if not kept:
        return Refuted("no hidden states or attentions are held when a backward pass begins or a step ends")
    saved = evidence.saved_by_freeing(without_names(evidence, kept))
    if saved < NOTABLE_SHARE * evidence.peak_bytes:
        return Refuted(f"the outputs of all layers that are held add {format_bytes(saved)} to the peak")
    live = [allocation for allocation in evidence.live if allocation in set(kept)]
    hold = next(hold for hold in evidence.holds_of(kept) if not hold.by_graph)
    return [
        Finding(
            rule=RULE.slug,
            title=f"Outputs of every layer are kept: {format_bytes(total_bytes(live))} of them at the peak",
            bytes=saved,
            evidence=(f"`{hold.name}` in {hold.where} is one of {len(kept)}", *largest_lines(live)),
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


RULE = Rule("outputs-kept", examine, needs=(Need.OBSERVED, Need.BACKWARD), refines=("graph-kept",))
