"""Which arguments of which calls in a script make a change of a plan: those of torch and of libraries that train."""

import re
from collections.abc import Callable, Collection, Iterator

from peaksight.planning.blocks import checkpointable_blocks
from peaksight.planning.editing import CallEdit
from peaksight.planning.knob_values import (
    Edit,
    absent,
    divided,
    given_as,
    in_place_of,
    left_out,
    multiplied,
    replaced,
    times,
)
from peaksight.planning.loader_calls import lines_of_loader
from peaksight.planning.situation import Situation
from peaksight.records.plan import Change

# Edits that are made all together.
Edits = tuple[CallEdit, ...]

TRAINING_ARGUMENTS = ("transformers.TrainingArguments", "transformers.Seq2SeqTrainingArguments")
_TRL_CONFIGS = tuple(f"trl.{name}Config" for name in ("SFT", "DPO", "ORPO", "KTO", "Reward"))
ARGUMENTS = (*TRAINING_ARGUMENTS, *_TRL_CONFIGS)
_ACCELERATORS = ("accelerate.Accelerator", "accelerate.accelerator.Accelerator")
_TRAINERS = tuple(
    f"{package}.Trainer"
    for package in ("lightning", "lightning.pytorch", "pytorch_lightning", "lightning.pytorch.trainer")
)
_LOADERS = ("torch.utils.data.DataLoader", "torch.utils.data.dataloader.DataLoader")
_DDP = ("torch.nn.parallel.DistributedDataParallel", "torch.nn.parallel.distributed.DistributedDataParallel")
_MODELS = re.compile(r"transformers\.(\w+\.)*\w*(Model|For)\w*\.(from_pretrained|from_config)")
_CONFIGS = re.compile(r"transformers\.(\w+\.)*\w+Config")


def call_edits(change: Change, situation: Situation) -> Iterator[Edits]:
    """Ways to make `change`, of which a script has one at most."""
    make = _EDITS.get(change.kind)
    if make is not None:
        yield from make(situation, **change.parameters)


def _optimizer(situation: Situation, *, implementation: str) -> Iterator[Edits]:
    kinds = {row.kind for row in situation.optimizers}
    names = {f"torch.optim.{kind}" for kind in kinds} | {f"torch.optim.{k.lower()}.{k}" for k in kinds}
    yield (CallEdit(names=names, arguments=_IMPLEMENTATIONS[implementation]),)
    if implementation == "fused" and kinds == {"AdamW"}:
        yield (CallEdit(names=ARGUMENTS, arguments={"optim": in_place_of('"adamw_torch"', '"adamw_torch_fused"')}),)


def _low_precision_state(situation: Situation, *, library: str) -> Iterator[Edits]:
    value = _EIGHT_BITS[library]
    for before in ('"adamw_torch"', '"adamw_torch_fused"'):
        yield (CallEdit(names=ARGUMENTS, arguments={"optim": in_place_of(before, value)}),)


def _bucket_views(situation: Situation) -> Iterator[Edits]:
    yield (CallEdit(names=_DDP, arguments={"gradient_as_bucket_view": given_as("True")}),)


def _autocast(situation: Situation, *, dtype: str) -> Iterator[Edits]:
    if dtype == "bfloat16":
        yield (CallEdit(names=ARGUMENTS, arguments={"bf16": given_as("True")}),)
        yield (CallEdit(names=_ACCELERATORS, arguments={"mixed_precision": given_as('"bf16"')}),)
        yield (CallEdit(names=_TRAINERS, arguments={"precision": given_as('"bf16-mixed"')}),)


def _attention(situation: Situation, *, implementation: str) -> Iterator[Edits]:
    value = f'"{implementation}"'
    yield (CallEdit(matching=_CONFIGS, arguments={"attn_implementation": replaced(value)}),)
    yield (CallEdit(matching=_MODELS, arguments={"attn_implementation": given_as(value)}),)


def _arguments(situation: Situation, *, parts: int) -> Iterator[Edits]:
    accumulating = {"per_device_train_batch_size": divided(parts), "gradient_accumulation_steps": multiplied(parts)}
    yield (CallEdit(names=ARGUMENTS, arguments=accumulating),)


def _accelerate(situation: Situation, *, parts: int, loaders: Collection[int]) -> Iterator[Edits]:
    more = {"gradient_accumulation_plugin": absent, "gradient_accumulation_steps": multiplied(parts)}
    yield (_loader(situation, parts), CallEdit(names=_ACCELERATORS, arguments=more))


def _checkpointing(situation: Situation, *, modules: Collection[str], save: Collection[str] = ()) -> Iterator[Edits]:
    """All blocks of a model of transformers, which checkpoints all or none."""
    if not save and set(modules) == set(checkpointable_blocks(situation)):
        yield (CallEdit(names=ARGUMENTS, arguments={"gradient_checkpointing": given_as("True")}),)


def _lightning(situation: Situation, *, parts: int) -> Iterator[Edits]:
    more = {
        "accumulate_grad_batches": multiplied(parts),
        "limit_train_batches": times(parts),
        "val_check_interval": times(parts),
    }
    yield (_loader(situation, parts), CallEdit(names=_TRAINERS, arguments=more))


def _loader(situation: Situation, parts: int) -> CallEdit:
    return CallEdit(names=_LOADERS, arguments={"batch_size": divided(parts)}, lines=lines_of_loader(situation))


_EDITS: dict[str, Callable[..., Iterator[Edits]]] = {
    "accelerate-accumulation": _accelerate,
    "autocast": _autocast,
    "bucket-views": _bucket_views,
    "checkpoint-modules": _checkpointing,
    "fused-attention": _attention,
    "lightning-accumulation": _lightning,
    "low-precision-state": _low_precision_state,
    "optimizer-implementation": _optimizer,
    "training-arguments": _arguments,
}

# What transformers calls them.
_EIGHT_BITS = {"bitsandbytes": '"adamw_bnb_8bit"', "torchao": '"adamw_torch_8bit"'}
_IMPLEMENTATIONS: dict[str, dict[str, Edit]] = {
    "fused": {"foreach": left_out, "fused": given_as("True")},
    "foreach": {"fused": left_out, "foreach": given_as("True")},
    "for-loop": {"fused": left_out, "foreach": given_as("False")},
}
