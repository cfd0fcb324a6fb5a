"""How a person writes the changes of a plan into the script."""

import shlex
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from peaksight.extras import is_installed
from peaksight.planning.edit_candidates import words_of
from peaksight.planning.edited_files import EditedFiles
from peaksight.planning.hydra_keys import where_set
from peaksight.planning.jax_words import JAX_WORDS, line_of
from peaksight.planning.knob_edits import Place, edit_flags, edit_knobs
from peaksight.planning.situation import Situation
from peaksight.records.plan import Change
from peaksight.records.proposals import Candidate, Written
from peaksight.records.source_edit import SOURCE_EDIT, SourceEdit

Parameters = Mapping[str, Any]
# More modules than this are told by the first and the last; the plan has them all.
_MANY = 4


def written(situation: Situation, candidate: Candidate) -> tuple[tuple[Written, ...], EditedFiles]:
    """Each change of `candidate` in words, in their order, and the script's files with those that can be made there.

    Without libcst calls are not edited, and statements stay on the line of the original.
    """
    sources = EditedFiles(Path(situation.command.target))
    found = [_written(sources, change, situation) for change in candidate.changes]
    if candidate.arguments is not None:
        words = f"the script's arguments: {shlex.join(candidate.arguments)}"
        place = edit_flags(sources, situation, candidate.arguments)
        at = place.at or where_set(sources.script, situation.command.args, candidate.arguments)
        found.append(Written(kind="own-flags", words=words, at=at, in_diff=bool(place.lines)))
    return tuple(found), sources


def _written(sources: EditedFiles, change: Change, situation: Situation) -> Written:
    if change.kind in JAX_WORDS:
        return Written(kind=change.kind, words=JAX_WORDS[change.kind](change.parameters), at=line_of(change, situation))
    if change.kind == SOURCE_EDIT:
        statement = SourceEdit(**change.parameters)
        sources.edit_statement(statement)
        return Written(kind=change.kind, words=WORDS[change.kind](change.parameters), at=statement.at, in_diff=True)
    place = _edit_calls(sources, change, situation)
    if not place.lines:
        place = edit_knobs(sources, change, situation)
    words = WORDS[change.kind](change.parameters)
    return Written(kind=change.kind, words=words, at=place.at, in_diff=bool(place.lines))


def _edit_calls(sources: EditedFiles, change: Change, situation: Situation) -> Place:
    """The calls whose arguments make `change`, none where that cannot be."""
    if not is_installed("libcst"):
        return Place()
    from peaksight.planning.call_edits import call_edits

    found = (sources.edit_calls(*edits) for edits in call_edits(change, situation))
    return Place(sources.script.name, tuple(next(filter(None, found), ())))


@dataclass(frozen=True)
class _Accumulation:
    """Words for smaller batches: what is divided, and what is multiplied."""

    divided: str
    multiplied: str

    def __call__(self, parameters: Parameters) -> str:
        parts = parameters["parts"]
        return f"{self.divided} divided by {parts}, and {self.multiplied} multiplied by {parts}"


def _names(modules: Sequence[str]) -> str:
    many = len(modules) > _MANY
    return f"the {len(modules)} modules {modules[0]} to {modules[-1]}" if many else ", ".join(modules)


def _checkpointing(parameters: Parameters) -> str:
    names, saved = _names(parameters["modules"]), ", ".join(parameters.get("save", ()))
    kept = f", with a `context_fn` that keeps the results of {saved}" if saved else ""
    return (
        f"`torch.utils.checkpoint.checkpoint(module, x, use_reentrant=False)` where {names} are called{kept}; for all "
        "blocks of a model of transformers `model.gradient_checkpointing_enable()`"
    )


def _sharding(parameters: Parameters) -> str:
    *blocks, model = parameters["modules"]
    each = f"each of the {len(blocks)} blocks {blocks[0]} to {blocks[-1]}, then {model}" if blocks else model
    return (
        f"`torch.distributed.fsdp.fully_shard` of {each}, before the optimizer is made; a DistributedSampler and "
        "`batch_size` divided by the ranks; `torchrun --nproc-per-node N`"
    )


def _implementation(parameters: Parameters) -> str:
    argument = {"fused": "fused=True", "foreach": "foreach=True", "for-loop": "foreach=False"}[
        parameters["implementation"]
    ]
    also = ', or `optim="adamw_torch_fused"` in TrainingArguments' if argument == "fused=True" else ""
    return f"`{argument}` for the optimizer's constructor{also}"


def _fixed(words: str) -> Callable[[Parameters], str]:
    return lambda parameters: words


# By the kind of the change, as in `overlays.apply.OVERLAYS`.
WORDS: dict[str, Callable[[Parameters], str]] = {
    "accelerate-accumulation": _Accumulation(
        "`batch_size` of the DataLoader", "`gradient_accumulation_steps` of the Accelerator"
    ),
    "allocator-settings": lambda parameters: f"`PYTORCH_ALLOC_CONF={parameters['settings']}` in the environment",
    "autocast": lambda parameters: (
        f'`with torch.autocast("cuda", dtype=torch.{parameters["dtype"]}):` around the model\'s call and the loss'
    ),
    "bfloat16-weights": _fixed("`model.to(torch.bfloat16)`, and inputs of float32 cast to it"),
    "bucket-views": _fixed("`DistributedDataParallel(..., gradient_as_bucket_view=True)`"),
    "checkpoint-modules": _checkpointing,
    "chunked-cross-entropy": _fixed(
        "the loss over a few rows of the logits at a time in a `torch.autograd.Function` that saves the logits only"
    ),
    "fused-attention": lambda parameters: (
        f'`attn_implementation="{parameters["implementation"]}"` where the model is made'
    ),
    "labelled-positions": _fixed(
        "the model called without labels for its hidden states, `kept = labels[:, 1:] != -100`, and "
        "`F.cross_entropy(model.lm_head(hidden[:, :-1][kept]).float(), labels[:, 1:][kept])`"
    ),
    "lightning-accumulation": _Accumulation(
        "`batch_size` of the DataLoader", "`accumulate_grad_batches` of the Trainer"
    ),
    "low-precision-state": lambda parameters: (
        f"`Adam8bit` or `AdamW8bit` of `{parameters['library']}.optim` in place of `Adam` or `AdamW` of `torch.optim`, "
        "without `fused` and `foreach`"
    ),
    "micro-batches": lambda parameters: (
        f"`batch_size` of the DataLoader divided by {parameters['parts']}, each loss multiplied by its part's share of "
        f"the samples, and `step()` and `zero_grad()` after every {parameters['parts']} parts only"
    ),
    "no-kv-cache": _fixed("`model.config.use_cache = False` before training"),
    "optimizer-implementation": _implementation,
    "optimizer-in-backward": _fixed(
        "an optimizer for each parameter that steps in `parameter.register_post_accumulate_grad_hook` and zeroes its "
        "gradient there"
    ),
    "optimizer-on-host": _fixed(
        "tensors of `optimizer.state` copied to pinned memory after `step()`, and back before it, in hooks by "
        "`register_step_post_hook` and `register_step_pre_hook`"
    ),
    "row-chunks": lambda parameters: (
        f"`torch.cat([checkpoint(module, part, use_reentrant=False) for part in x.chunk({parameters['chunks']})])` "
        f"where {_names(parameters['modules'])} are called"
    ),
    "saved-on-host": _fixed("`with torch.autograd.graph.save_on_cpu(pin_memory=True):` around the model's call"),
    "sharding": _sharding,
    SOURCE_EDIT: lambda parameters: words_of(SourceEdit(**parameters)),
    "training-arguments": _Accumulation(
        "`per_device_train_batch_size` of TrainingArguments", "its `gradient_accumulation_steps`"
    ),
}
