"""Whether the loss of a batch is the mean of the losses of its parts, and what else parts see that the batch does not.

Evidence is what ran, and what the person's files name. What neither shows, such as weights that a loss is divided by,
`verify --plan` finds: it compares gradients.
"""

import re
from collections.abc import Iterator
from dataclasses import dataclass

from peaksight.diagnosis.shapes import parsed
from peaksight.planning.script_text import ScriptText, text_of_script
from peaksight.planning.situation import Situation
from peaksight.records import Phase
from peaksight.records.findings import Effect

_NEGATIVES = re.compile(
    r"(^|_)(in_?batch|ranking|listwise|pairwise|cdist|return_loss)"
    r"|info_?nce|nt_?xent|contrastive|multiple_?negatives|triplet|supcon|siglip|clip_?loss|ranking_?loss"
)
_ROUTERS = re.compile(r"aux_loss|load_balanc|router_logits")
_AVERAGES = re.compile(r"(^|_)ema(_|$)|averagedmodel|model_?ema")


# What to write by hand, for each part of a batch.
_MEANS = "(loss * len(part) / len(batch)).backward()"
_COUNTED = "(loss.sum() / labels_in_the_batch).backward()"


@dataclass(frozen=True, slots=True)
class Hazard:
    """Why parts of a batch do not train as the batch does: `effect` is the most that it changes.

    `backward` is how to call it by hand for each part, empty where no such line does.
    """

    why: str
    effect: Effect = Effect.NOISE
    backward: str = _MEANS


_COMPARES = Hazard("its loss compares the samples of a batch with each other", Effect.MODEL, "")
_COUNTS = Hazard(
    "its loss is a mean over as many positions as have a label, which differ from sample to sample: a mean of such "
    "means is another one",
    Effect.MODEL,
    _COUNTED,
)
_IGNORES = Hazard("its loss leaves out some targets (ignore_index)", Effect.MODEL, _COUNTED)
_SUMS = Hazard("its loss is a sum over the batch", Effect.MODEL, "loss.backward()")


def hazards_of(situation: Situation) -> tuple[Hazard, ...]:
    """Those of any way to pass a batch in parts."""
    text = text_of_script(situation)
    holding = (
        (has_recorded(situation, "batch_norm"), Hazard("BatchNorm takes its statistics from each part of the batch")),
        (has_recorded(situation, "dropout"), Hazard("dropout draws other masks for parts of a batch")),
        (text.names(_ROUTERS), Hazard("the balance of experts is judged in each part of the batch")),
        (_compares_samples(situation, text), _COMPARES),
        (_counts_labels(situation), _COUNTS),
    )
    return tuple(hazard for holds, hazard in holding if holds)


def hazards_of_scaling(situation: Situation) -> tuple[Hazard, ...]:
    """Those of a loss that is scaled from outside, beside `hazards_of`."""
    text = text_of_script(situation)
    holding = (
        (text.sums_its_loss, _SUMS),
        (text.names(_AVERAGES), Hazard("it averages weights with every batch that it reads", Effect.MODEL, _MEANS)),
        (text.names(re.compile("ignore_index")), _IGNORES),
    )
    return tuple(hazard for holds, hazard in holding if holds)


def worst_hazard(hazards: tuple[Hazard, ...]) -> Effect:
    """The effect of passing a batch in parts."""
    order = (Effect.ROUNDING, Effect.NOISE, Effect.MODEL)
    return max((hazard.effect for hazard in hazards), key=order.index, default=Effect.ROUNDING)


def has_recorded(situation: Situation, name: str) -> bool:
    """Whether an operator of this name (`batch_norm`) was recorded in training."""
    return any(
        name in a.op or name.replace("_", "") in a.saved_by.lower()
        for a in situation.capture.allocations
        if a.grad_enabled and a.phase is Phase.FORWARD and a.saved_by
    )


def _compares_samples(situation: Situation, text: ScriptText) -> bool:
    """By name, or by a product of every sample with every other one outside of a layer."""
    return text.names(_NEGATIVES) or any(_pairs(situation))


def _pairs(situation: Situation) -> Iterator[bool]:
    rows = {call.rows for call in situation.capture.passes if call.recorded and call.training and call.rows > 1}
    paths = {fact.module for fact in situation.capture.modules}
    layers = {path for path in paths if not any(other.startswith(f"{path}.") for other in paths)}
    for a in situation.capture.allocations:
        if a.grad_enabled and a.phase is Phase.FORWARD and "mm" in a.op and a.module not in layers:
            sizes = parsed(a.tensor).sizes
            yield len(sizes) == 2 and sizes[0] == sizes[1] and sizes[0] in rows


def _counts_labels(situation: Situation) -> bool:
    """Labels of -100 beside others; or samples of other lengths from batch to batch, and no label for each sample."""
    if any(label.num_ignored for label in situation.capture.labels):
        return True
    batches = situation.capture.batches
    tails = {tuple(parsed(part).sizes[1:] for part in batch.shapes.split("; ")) for batch in batches}
    per_sample = all(any(len(parsed(part).sizes) == 1 for part in batch.shapes.split("; ")) for batch in batches)
    return len(tails) > 1 and not per_sample
