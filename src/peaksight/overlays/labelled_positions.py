"""Causal models of transformers that make logits of those positions only that have a label."""

import functools
import inspect
from collections.abc import Callable
from functools import partial
from types import ModuleType
from typing import Any

import torch
from torch.nn import functional

from peaksight.overlays.late_imports import change_modules
from peaksight.overlays.patches import Patches

_IGNORED = -100
_WRAPPED = "has_labelled_positions"


def apply(patches: Patches, note: Callable[[], None]) -> None:
    """Have models made from here on apply their head to labelled positions only, in training, until `patches` is left.

    So does every model whose loss is transformers' own for causal models (`ForCausalLMLoss`) when it is called with
    labels and autograd records. Its output has no logits then: what reads them finds None. Others stay as they are.
    """
    change_modules(patches, {"transformers.modeling_utils": partial(_change_models, patches, note)})


def _change_models(patches: Patches, note: Callable[[], None], module: ModuleType) -> None:
    """Change the class of each model that is made: whatever wraps the model later on has its `forward` from there."""
    make = module.PreTrainedModel.__init__

    @functools.wraps(make)
    def made(model: Any, *args: Any, **kwargs: Any) -> None:
        _change_class(patches, note, type(model))
        make(model, *args, **kwargs)

    patches.set(module.PreTrainedModel, "__init__", made)


def _change_class(patches: Patches, note: Callable[[], None], cls: Any) -> None:
    forward = cls.forward
    if getattr(forward, _WRAPPED, False) or "loss_function" not in inspect.unwrap(forward).__code__.co_names:
        return
    signature = inspect.signature(forward)

    @functools.wraps(forward)
    def called(model: Any, *args: Any, **kwargs: Any) -> Any:
        labels = signature.bind_partial(model, *args, **kwargs).arguments.get("labels")
        if labels is None or "shift_labels" in kwargs or not _can_be_taken(model, **kwargs):
            return forward(model, *args, **kwargs)
        return _Labelled(model, labels).call(partial(forward, model, *args, **kwargs), note)

    setattr(called, _WRAPPED, True)
    patches.set(cls, "forward", called)


def _can_be_taken(model: Any, *, return_dict: bool | None = None, **others: Any) -> bool:
    """Whether the loss is the library's, and the output says by name what is in it."""
    from transformers.loss.loss_utils import ForCausalLMLoss

    has_names = model.config.return_dict if return_dict is None else return_dict
    is_training = torch.is_grad_enabled() and model.training
    return is_training and has_names and model.loss_function is ForCausalLMLoss and model.get_output_embeddings()


class _Labelled:
    """One call of a model with `labels` (batch, length): position i is to say what label i + 1 is."""

    def __init__(self, model: Any, labels: torch.Tensor) -> None:
        self._model, self._loss, self._shape = model, model.loss_function, labels.shape
        shifted = functional.pad(labels, (0, 1), value=_IGNORED)[..., 1:].flatten()
        self._places = (shifted != _IGNORED).nonzero().squeeze(1)
        self._labels = shifted[self._places]
        self._was_taken = False

    def call(self, forward: Callable[[], Any], note: Callable[[], None]) -> Any:
        """`forward` with another input of the head and the labels that belong to it."""
        hook = self._model.get_output_embeddings().register_forward_pre_hook(self._take)
        before = vars(self._model).get("_loss_function")
        self._model.loss_function = self._loss_of_taken
        try:
            outputs = forward()
        finally:
            hook.remove()
            self._restore(before)
        if not self._was_taken:
            return outputs
        note()
        return type(outputs)(**{**outputs, "logits": None})

    def _restore(self, before: Any) -> None:
        if before is None:
            del self._model._loss_function
        else:
            self._model._loss_function = before

    def _take(self, head: Any, args: tuple[Any, ...]) -> Any:
        """Of hidden states (batch, length, width) those of the labelled positions (1, labelled, width)."""
        hidden = args[0]
        if self._was_taken or hidden.shape[:-1] != self._shape:
            return None
        self._was_taken = True
        return (hidden.flatten(0, -2).index_select(0, self._places.to(hidden.device)).unsqueeze(0), *args[1:])

    def _loss_of_taken(self, logits: torch.Tensor, labels: torch.Tensor, *args: Any, **kwargs: Any) -> Any:
        if self._was_taken:
            kwargs["shift_labels"] = self._labels
        return self._loss(logits, labels, *args, **kwargs)
