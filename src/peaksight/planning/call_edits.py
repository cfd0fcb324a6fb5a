"""Which arguments of which calls in a script make a change of a plan: those of torch and of libraries that train."""

import re
from collections.abc import Callable, Collection, Iterator

from peaksight.planning.editing import CallEdit, CannotEditError, Edit
from peaksight.planning.loader_calls import lines_of_loader
from peaksight.planning.situation import Situation
from peaksight.records.plan import Change

# Edits that are made all together.
Edits = tuple[CallEdit, ...]

TRAINING_ARGUMENTS = ("transformers.TrainingArguments", "transformers.Seq2SeqTrainingArguments")
_TRL_CONFIGS = tuple(f"trl.{name}Config" for name in ("SFT", "DPO", "ORPO", "KTO", "Reward"))
_ARGUMENTS = (*TRAINING_ARGUMENTS, *_TRL_CONFIGS)
_ACCELERATORS = ("accelerate.Accelerator", "accelerate.accelerator.Accelerator")
_TRAINERS = tuple(
    f"{package}.Trainer"
    for package in ("lightning", "lightning.pytorch", "pytorch_lightning", "lightning.pytorch.trainer")
)
_LOADERS = ("torch.utils.data.DataLoader", "torch.utils.data.dataloader.DataLoader")
_DDP = ("torch.nn.parallel.DistributedDataParallel", "torch.nn.parallel.distributed.DistributedDataParallel")
_MODELS = re.compile(r"transformers\.(\w+\.)*\w*(Model|For)\w*\.(from_pretrained|from_config)")
_CONFIGS = re.compile(r"transformers\.(\w+\.)*\w+Config")
_NAME = re.compile(r"[A-Za-z_][\w.]*")
_FRACTION = re.compile(r"0?\.\d+|1\.0*")


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
        yield (CallEdit(names=_ARGUMENTS, arguments={"optim": _in_place_of('"adamw_torch"', '"adamw_torch_fused"')}),)


def _bucket_views(situation: Situation) -> Iterator[Edits]:
    yield (CallEdit(names=_DDP, arguments={"gradient_as_bucket_view": _set("True")}),)


def _autocast(situation: Situation, *, dtype: str) -> Iterator[Edits]:
    if dtype == "bfloat16":
        yield (CallEdit(names=_ARGUMENTS, arguments={"bf16": _set("True")}),)
        yield (CallEdit(names=_ACCELERATORS, arguments={"mixed_precision": _set('"bf16"')}),)
        yield (CallEdit(names=_TRAINERS, arguments={"precision": _set('"bf16-mixed"')}),)


def _attention(situation: Situation, *, implementation: str) -> Iterator[Edits]:
    value = f'"{implementation}"'
    yield (CallEdit(matching=_CONFIGS, arguments={"attn_implementation": _replaced(value)}),)
    yield (CallEdit(matching=_MODELS, arguments={"attn_implementation": _set(value)}),)


def _arguments(situation: Situation, *, parts: int) -> Iterator[Edits]:
    accumulating = {"per_device_train_batch_size": _divided(parts), "gradient_accumulation_steps": _multiplied(parts)}
    yield (CallEdit(names=_ARGUMENTS, arguments=accumulating),)


def _accelerate(situation: Situation, *, parts: int, loaders: Collection[int]) -> Iterator[Edits]:
    more = {"gradient_accumulation_plugin": _absent, "gradient_accumulation_steps": _multiplied(parts)}
    yield (_loader(situation, parts), CallEdit(names=_ACCELERATORS, arguments=more))


def _lightning(situation: Situation, *, parts: int) -> Iterator[Edits]:
    more = {
        "accumulate_grad_batches": _multiplied(parts),
        "limit_train_batches": _times(parts),
        "val_check_interval": _times(parts),
    }
    yield (_loader(situation, parts), CallEdit(names=_TRAINERS, arguments=more))


def _loader(situation: Situation, parts: int) -> CallEdit:
    return CallEdit(names=_LOADERS, arguments={"batch_size": _divided(parts)}, lines=lines_of_loader(situation))


_EDITS: dict[str, Callable[..., Iterator[Edits]]] = {
    "accelerate-accumulation": _accelerate,
    "autocast": _autocast,
    "bucket-views": _bucket_views,
    "fused-attention": _attention,
    "lightning-accumulation": _lightning,
    "optimizer-implementation": _optimizer,
    "training-arguments": _arguments,
}


def _set(value: str) -> Edit:
    return lambda given: value


def _left_out(given: str | None) -> None:
    return None


def _absent(given: str | None) -> None:
    """An argument that says the same in another way."""
    if given is not None:
        raise CannotEditError


def _replaced(value: str) -> Edit:
    """`value` where the argument is there."""

    def replaced(given: str | None) -> str:
        if given is None:
            raise CannotEditError
        return value

    return replaced


def _in_place_of(before: str, value: str) -> Edit:
    """`value` where nothing or `before` is given."""

    def replaced(given: str | None) -> str:
        if given is not None and given.replace("'", '"') != before:
            raise CannotEditError
        return value

    return replaced


def _divided(parts: int) -> Edit:
    def divided(given: str | None) -> str:
        if given and given.isdecimal() and int(given) % parts == 0:
            return str(int(given) // parts)
        if given and _NAME.fullmatch(given):
            return f"{given} // {parts}"
        raise CannotEditError

    return divided


def _multiplied(parts: int) -> Edit:
    def multiplied(given: str | None) -> str:
        if given is None or given.isdecimal():
            return str(int(given or 1) * parts)
        if _NAME.fullmatch(given):
            return f"{given} * {parts}"
        raise CannotEditError

    return multiplied


def _times(parts: int) -> Edit:
    """A number of batches times `parts`; a share of all, and none, stay."""

    def times(given: str | None) -> str | None:
        if given is None or given == "None" or _FRACTION.fullmatch(given):
            return given
        return _multiplied(parts)(given)

    return times


_IMPLEMENTATIONS: dict[str, dict[str, Edit]] = {
    "fused": {"foreach": _left_out, "fused": _set("True")},
    "foreach": {"fused": _left_out, "foreach": _set("True")},
    "for-loop": {"fused": _left_out, "foreach": _set("False")},
}
