"""# A smaller batch or a shorter input does not lower the peak

## What it finds
The peak consists of what no batch decides over: parameters, gradients, the optimizer's state and
its temporaries. The moments that do depend on the batch are lower, so that making it smaller lowers
only them.

## Why it costs memory
The peak is the highest moment, not a sum. In the optimizer's step all activations are gone, while
foreach temporaries come on top of the whole state: where the model is large and the batch is small,
that moment is the highest one. Halving the batch then costs time and gives nothing.

## Example
T5-XL in bfloat16 with checkpointing on an H100: cut from 256/512 to 196/384 tokens, its peak went
from 26.26 to 26.21 GiB, for it is in AdamW's step.

## Fixes
- Look at what the peak does consist of: optimizer-temporaries, model-state.

## Known misses
What is computed from weights alone, as a norm or a merged adapter, counts as depending on the batch, so
that the rule is silent more often than it could be. Plain copies of weights, as autocast's, do not.
"""

from peaksight.diagnosis.evidence import Evidence, main_line
from peaksight.diagnosis.input_dependent import depending_on_input
from peaksight.diagnosis.rule import Answer, Need, Refuted, Rule, is_notable
from peaksight.records import Basis, Finding, Phase
from peaksight.units import format_bytes


def examine(evidence: Evidence) -> Answer:
    """By how much the peak falls where nothing is left that the batch decides over."""
    falls = evidence.saved_without(depending_on_input(evidence))
    if is_notable(evidence, falls):
        return Refuted(f"without all that depends on the batch the peak falls by {evidence.share(falls)}")
    return [
        Finding(
            rule=RULE.slug,
            title=f"A smaller batch or shorter input lowers the peak by {format_bytes(falls)} at most",
            bytes=0,
            evidence=(
                f"the peak is in the {evidence.peak_phase} of step {evidence.peak_step}: "
                f"of what the batch decides over nothing but {format_bytes(falls)} counts there",
                *_highest_in_passes(evidence),
            ),
            fixes=(),
            basis=Basis.LIFETIME,
            at=main_line([evidence.peak_maker] if evidence.peak_maker else ()),
            without_effect=True,
        )
    ]


def _highest_in_passes(evidence: Evidence) -> tuple[str, ...]:
    """How high forward and backward come, which do depend on it."""
    highest = max(
        (level for born, level in evidence.lifetimes.levels if born.phase in (Phase.FORWARD, Phase.BACKWARD)), default=0
    )
    if evidence.peak_phase in (Phase.FORWARD, Phase.BACKWARD):
        return ()
    return (
        f"forward and backward come to {format_bytes(highest)}, {format_bytes(evidence.peak_bytes - highest)} less",
    )


RULE = Rule("smaller-input-no-effect", examine, needs=(Need.STEPS,))
