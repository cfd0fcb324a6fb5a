"""Weights that were never downloaded: a simulated run is offline, needs no values, and does without them.

`from_pretrained` takes the model from its configuration and loads a checkpoint of that model's own shapes, so that the
card sees what it would see. Other libraries keep the weights that they initialised. The report names what was missing.
"""

import os
from collections.abc import Callable
from functools import wraps
from types import ModuleType
from typing import Any
from urllib.error import URLError

import torch
from torch import nn

from peaksight.overlays.late_imports import change_modules
from peaksight.overlays.patches import Patches
from peaksight.virtual_gpu.training.training_loop import TrainingLoop
from peaksight.virtual_gpu.weights import pretrained_transformers
from peaksight.virtual_gpu.weights.pretrained_transformers import Note


class MissingWeights(dict[str, Any]):
    """A state dict that could not be downloaded: every key names another one, and loading it changes nothing."""

    def __missing__(self, key: Any) -> "MissingWeights":
        """What is inside, such as `checkpoint["model"]`."""
        return MissingWeights()

    def __delitem__(self, key: Any) -> None:
        """Classifier heads are taken out of what is loaded."""
        self.pop(key, None)

    def pop(self, key: Any, *default: Any) -> Any:
        """As above."""
        return super().pop(key, *(default or (MissingWeights(),)))


def install(patches: Patches, note: Note, loop: TrainingLoop) -> None:
    """Do without missing weights until `patches` is left; `note(slug, name)` is told of each."""
    patches.set(nn.Module, "load_state_dict", _or_leave(nn.Module.load_state_dict))
    download = _or_missing(torch.hub.load_state_dict_from_url, note)
    patches.set(torch.hub, "load_state_dict_from_url", download)
    pretrained_transformers.install(patches, note, loop)

    def replace(name: str, wrap: Callable[[Callable[..., Any]], Callable[..., Any]]) -> Callable[[ModuleType], None]:
        def change(module: ModuleType) -> None:
            patches.set(module, name, wrap(getattr(module, name)))

        return change

    changes = {
        "torchvision.models._api": replace("load_state_dict_from_url", lambda real: download),
        "timm.models._builder": replace("load_pretrained", lambda real: _timm(real, note)),
        "peft.peft_model": replace("load_peft_weights", lambda real: _peft(real, note)),
    }
    change_modules(patches, changes)


def _or_leave(load: Callable[..., Any]) -> Callable[..., Any]:
    @wraps(load)
    def load_state_dict(module: nn.Module, state_dict: Any, *args: Any, **kwargs: Any) -> Any:
        """Missing weights fit every module."""
        if isinstance(state_dict, MissingWeights):
            return load(module, {}, strict=False)
        return load(module, state_dict, *args, **kwargs)

    return load_state_dict


def _or_missing(load: Callable[..., Any], note: Note) -> Callable[..., Any]:
    def load_state_dict_from_url(url: str, *args: Any, **kwargs: Any) -> Any:
        """`torch.hub.load_state_dict_from_url`, of which torchvision takes its weights."""
        try:
            return load(url, *args, **kwargs)
        except URLError:
            note("missing-weights", os.path.basename(url))
            return MissingWeights()

    return load_state_dict_from_url


def _timm(load: Callable[..., Any], note: Note) -> Callable[..., Any]:
    def load_pretrained(model: Any, pretrained_cfg: Any = None, *args: Any, **kwargs: Any) -> None:
        """`timm.create_model(..., pretrained=True)`."""
        source = pretrained_cfg or model.pretrained_cfg
        try:
            load(model, pretrained_cfg, *args, **kwargs)
        except (OSError, ValueError) as error:
            if not _is_offline(error):
                raise
            note("missing-weights", source.get("hf_hub_id") or source["architecture"])

    return load_pretrained


def _peft(load: Callable[..., Any], note: Note) -> Callable[..., Any]:
    def load_peft_weights(model_id: str, *args: Any, **kwargs: Any) -> Any:
        """The weights of `PeftModel.from_pretrained(model, model_id)`."""
        try:
            return load(model_id, *args, **kwargs)
        except (OSError, ValueError) as error:
            if not _is_offline(error):
                raise
            note("missing-weights", model_id)
            return {}

    return load_peft_weights


def _is_offline(error: BaseException) -> bool:
    """Whether huggingface_hub found nothing in its cache and may not look elsewhere."""
    from huggingface_hub.errors import LocalEntryNotFoundError, OfflineModeIsEnabled

    return isinstance(error, (LocalEntryNotFoundError, OfflineModeIsEnabled))
