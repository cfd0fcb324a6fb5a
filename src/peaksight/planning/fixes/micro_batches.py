"""Fewer samples at a time, with gradients accumulated over as many as before: where the script has no flag for it."""

import re
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from peaksight.planning.decomposition import Hazard, hazards_of, hazards_of_scaling, worst_hazard
from peaksight.planning.kind import FixKind, Proposal
from peaksight.planning.loops import Loading, loading_of
from peaksight.planning.script_text import ScriptText, ends_early, text_of_script
from peaksight.planning.situation import Situation
from peaksight.records.findings import Effect
from peaksight.records.plan import Change
from peaksight.records.proposals import Candidate

_SLUG = "micro-batches"
_PARTS = (2, 4, 8)
# TrainingArguments, Seq2SeqTrainingArguments, and trl's SFTConfig and its like.
_ARGUMENTS = re.compile(r"trainingarguments$|^(sft|dpo|orpo|kto|reward)config$")


@dataclass(frozen=True, slots=True)
class _Way:
    """How batches are passed in parts: the change's `kind` and what it takes; `title` has a place for their number."""

    kind: str
    title: str
    parameters: dict[str, Any]


def _propose(situation: Situation) -> Iterator[Proposal]:
    text = text_of_script(situation)
    loading = loading_of(situation)
    if loading is None:
        if not situation.variants:
            yield FIX.not_applied(
                "no DataLoader gives its batches", "name flags of the script, as in --vary '--batch 4 --accum 2'"
            )
        return
    way = _way(text, loading)
    hazards = hazards_of(situation)
    if way.kind != "training-arguments":
        hazards += hazards_of_scaling(situation)
    why = _why_not(situation, text, loading, way, hazards)
    if why:
        yield FIX.not_applied(why, _advice(way, hazards))
        return
    yield from (_candidate(way, parts, hazards) for parts in _PARTS if loading.batch_size % parts == 0)


def _way(text: ScriptText, loading: Loading) -> _Way:
    """By the library that the script's loop is of."""
    if text.names(_ARGUMENTS):
        return _Way("training-arguments", "per_device_train_batch_size / {0}, gradient_accumulation_steps * {0}", {})
    if text.imports("lightning", "pytorch_lightning"):
        return _Way("lightning-accumulation", "batch_size / {0}, accumulate_grad_batches * {0}", {})
    loaders = {"loaders": list(loading.loaders)}
    if text.imports("accelerate"):
        return _Way("accelerate-accumulation", "batch_size / {0}, gradient_accumulation_steps * {0}", loaders)
    return _Way(_SLUG, "batches in {0} parts, gradients accumulated", loaders)


def _why_not(situation: Situation, text: ScriptText, loading: Loading, way: _Way, hazards: tuple[Hazard, ...]) -> str:
    """Why parts cannot be made from outside, or would train otherwise; empty if they can."""
    if worst_hazard(hazards) is Effect.MODEL:
        return next(hazard.why for hazard in hazards if hazard.effect is Effect.MODEL)
    if not any(loading.batch_size % parts == 0 for parts in _PARTS):
        return f"2 does not divide its batch of {loading.batch_size}"
    if way.kind == "accelerate-accumulation" and not text.calls("accumulate"):
        return "it does not step within accelerator.accumulate()"
    return _why_not_plain(situation, text, loading) if way.kind == _SLUG else ""


def _why_not_plain(situation: Situation, text: ScriptText, loading: Loading) -> str:
    """For a loop of the script's own."""
    capture = situation.capture
    if len({row.optimizer for row in capture.optimizers}) > 1:
        return "it has several optimizers, each of which may need what another one has done"
    if any(row.kind == "LBFGS" for row in capture.optimizers):
        return "its optimizer evaluates the loss itself"
    if loading.passes != 1:
        return f"a step goes through {loading.passes} backward passes already"
    if text.assigns("grad"):
        return "it sets gradients itself"
    loop = text.loop_at(loading.at)
    if loop is None or ends_early(loop):
        return f"{loading.at} may stop before its DataLoader does, and would count parts as batches"
    return ""


def _candidate(way: _Way, parts: int, hazards: tuple[Hazard, ...]) -> Candidate:
    cautions = tuple(hazard.why for hazard in hazards)
    if way.kind in ("lightning-accumulation", "accelerate-accumulation"):
        cautions += (f"of a last batch that {parts} does not divide, the smaller parts count as much as the others",)
    return Candidate(
        kinds=(_SLUG,),
        title=way.title.format(parts),
        slots=("batch",),
        effect=worst_hazard(hazards),
        changes=(Change(kind=way.kind, parameters={"parts": parts, **way.parameters}),),
        cautions=cautions,
    )


def _advice(way: _Way, hazards: tuple[Hazard, ...]) -> str:
    """What to write by hand instead, in a loop that the script has itself."""
    worst = next((hazard for hazard in hazards if hazard.effect is Effect.MODEL), None)
    if worst is not None and not worst.backward:
        return "GradCache has such gradients in parts: all representations first, then those of each part again"
    if way.kind not in (_SLUG, "accelerate-accumulation"):
        return ""
    backward = worst.backward if worst else Hazard("").backward
    return "\n".join(
        (
            "-    loss.backward()",
            "-    optimizer.step()",
            "-    optimizer.zero_grad()",
            f"+    {backward}  # for each part of the batch",
            "+    optimizer.step()  # after the last part",
            "+    optimizer.zero_grad()",
        )
    )


FIX = FixKind(
    slug=_SLUG,
    title="batches in parts, gradients accumulated",
    effect=Effect.NOISE,
    text=(
        "A batch goes through the model in parts, and the optimizer steps after the last of them: activations of one "
        "part at a time, gradients of the whole batch. By transformers' TrainingArguments, Lightning's Trainer, "
        "accelerate's accumulate(), or in a plain loop over a DataLoader. The same up to rounding where the loss is a "
        "mean over samples. Dropout draws other masks, and BatchNorm takes the statistics of each part. A loss that "
        "compares samples with each other, or is a mean over positions of which each sample has another number, cannot "
        "be taken in parts."
    ),
    propose=_propose,
)
