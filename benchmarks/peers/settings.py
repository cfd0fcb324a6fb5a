"""What peers ask to be told of a training step, read off the step itself."""

from typing import Any

import torch

from benchmarks.peers.first_step import TrainingStep


def model_dtype(step: TrainingStep) -> torch.dtype:
    """Of its first floating parameter."""
    return next(p.dtype for p in step.model.parameters() if p.is_floating_point())


def batch_size(step: TrainingStep) -> int:
    """The first dimension of the batch, or the number of its samples."""
    return len(step.batch) if step.batch is not None else len(step.args[0])


def sequence_length(step: TrainingStep) -> int | None:
    """Of a batch of token ids."""
    batch = step.batch
    is_tokens = batch is not None and batch.ndim == 2 and not batch.is_floating_point()
    return batch.shape[1] if batch is not None and is_tokens else None


def image_size(step: TrainingStep) -> int | None:
    """Of a batch of square images."""
    return step.batch.shape[-1] if step.batch is not None and step.batch.ndim == 4 else None


def is_checkpointed(step: TrainingStep) -> bool:
    """Whether a module says that it recomputes its activations, as those of transformers and timm do."""
    names = ("gradient_checkpointing", "grad_checkpointing")
    return any(getattr(module, name, False) is True for module in step.model.modules() for name in names)


def uses_fused_attention(step: TrainingStep) -> bool:
    """Whether attention is `scaled_dot_product_attention`, as transformers and timm say of theirs."""
    config: Any = getattr(step.model, "config", None)
    if config is not None:
        return getattr(config, "_attn_implementation", None) == "sdpa"
    return any(getattr(module, "fused_attn", False) for module in step.model.modules())


def optimizer_name(step: TrainingStep, *, momentum: str) -> str:
    """The lower-case class of the first optimizer; `momentum` is added to an SGD that has some."""
    optimizer = step.optimizers[0]
    name = type(optimizer).__name__.lower()
    return name + momentum if any(group.get("momentum") for group in optimizer.param_groups) else name
