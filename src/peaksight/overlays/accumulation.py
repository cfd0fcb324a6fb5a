"""Smaller batches with as much more accumulation, where a library accumulates: transformers, accelerate, Lightning."""

import functools
from collections.abc import Callable, Collection
from types import ModuleType
from typing import Any
from weakref import WeakSet

from torch.utils.data import DataLoader

from peaksight.overlays import parts_of_batches
from peaksight.overlays.late_imports import change_modules
from peaksight.overlays.patches import Patches

_STAGE = "train"


def apply_to_arguments(patches: Patches, note: Callable[[], None], *, parts: int) -> None:
    """Of transformers' TrainingArguments, divide the batch of a device by `parts`, and accumulate as many times more.

    Those with a batch that `parts` does not divide stay as they are, and so do those that drop the last batch of an
    epoch, which would be another one.
    """

    def change(module: ModuleType) -> None:
        finish = module.TrainingArguments.__post_init__

        @functools.wraps(finish)
        def finish_smaller(arguments: Any) -> None:
            if arguments.per_device_train_batch_size % parts == 0 and not arguments.dataloader_drop_last:
                arguments.per_device_train_batch_size //= parts
                arguments.gradient_accumulation_steps *= parts
                note()
            finish(arguments)

        patches.set(module.TrainingArguments, "__post_init__", finish_smaller)

    change_modules(patches, {"transformers.training_args": change})


def apply_to_accelerator(patches: Patches, note: Callable[[], None], *, parts: int, loaders: Collection[int]) -> None:
    """Give the batches of the `loaders` in `parts`, and let accelerate's Accelerator accumulate as many times more."""

    def change(module: ModuleType) -> None:
        begin = module.Accelerator.__init__

        @functools.wraps(begin)
        def begin_with_more(accelerator: Any, *args: Any, **kwargs: Any) -> None:
            begin(accelerator, *args, **kwargs)
            accelerator.gradient_accumulation_steps *= parts

        patches.set(module.Accelerator, "__init__", begin_with_more)

    parts_of_batches.install(patches, lambda part: note() if part else None)
    parts_of_batches.split_numbered(patches, parts, loaders)
    change_modules(patches, {"accelerate.accelerator": change})


def apply_to_lightning(patches: Patches, note: Callable[[], None], *, parts: int) -> None:
    """Give the training batches of Lightning's Trainer in `parts`, and let it accumulate as many times more.

    Loaders whose last batch has fewer samples than `parts` stay as they are, and with them the trainer.
    """
    trainers: WeakSet[Any] = WeakSet()

    def change(module: ModuleType) -> None:
        process, limit = module._process_dataloader, module._parse_num_batches

        def processed(trainer: Any, function: Any, stage: Any, loader: Any) -> Any:
            loader = process(trainer, function, stage, loader)
            if stage.value == _STAGE and isinstance(loader, DataLoader) and _every_batch_has(loader, parts):
                parts_of_batches.split(loader, parts, counts_parts=True)
                if trainer not in trainers:
                    trainers.add(trainer)
                    trainer.accumulate_grad_batches *= parts
                note()
            return loader

        def limited(stage: Any, length: Any, limit_batches: Any) -> Any:
            is_number = stage.value == _STAGE and isinstance(limit_batches, int) and len(trainers)
            return limit(stage, length, limit_batches * parts if is_number else limit_batches)

        patches.set(module, "_process_dataloader", processed)
        patches.set(module, "_parse_num_batches", limited)

    parts_of_batches.install(patches, lambda part: None)
    names = ("lightning.pytorch.loops.fit_loop", "pytorch_lightning.loops.fit_loop")
    change_modules(patches, dict.fromkeys(names, change))


def _every_batch_has(loader: DataLoader[Any], parts: int) -> bool:
    """Whether even the last batch of `loader` has as many samples."""
    if not parts_of_batches.can_split(loader):
        return False
    sampler: Any = loader.batch_sampler
    size, samples = getattr(sampler, "batch_size", 0), getattr(sampler, "sampler", None)
    if not size or size < parts or samples is None:
        return False
    last = 0 if getattr(sampler, "drop_last", False) else len(samples) % size
    return last == 0 or last >= parts
