"""What stands in transformers for weights that are not in the cache, and for what a run cannot do without."""

import os
from collections.abc import Callable
from functools import wraps
from tempfile import TemporaryDirectory
from typing import Any, NamedTuple

import torch

from peaksight.errors import ScriptError
from peaksight.overlays.late_imports import Change, change_modules
from peaksight.overlays.patches import Patches
from peaksight.records import Phase
from peaksight.virtual_gpu.training.training_loop import TrainingLoop
from peaksight.virtual_gpu.weights.safetensors_files import write_without_data

Note = Callable[[str, str], None]


class MissingFiles(ScriptError, OSError):
    """Not even a configuration or a tokenizer is there; libraries that can do without expect an OSError."""

    def __init__(self, what: str, download: str) -> None:
        """`what` is missing; `hf download` gets it."""
        cause = "not in the local cache, and a simulated run is offline"
        super().__init__(f"{what} {cause}: download it once with `hf download {download}`.", slug="missing-files")


class DemandedFile(NamedTuple):
    """A class method of transformers that gives what is in a file, which has no stand-in."""

    owner: str
    finder: str
    file: str
    what: str


DEMANDED_FILES = {
    "configuration_utils": DemandedFile("PreTrainedConfig", "_get_config_dict", "config.json", "configuration"),
    "image_processing_base": DemandedFile(
        "ImageProcessingMixin", "get_image_processor_dict", "preprocessor_config.json", "image processor"
    ),
    "feature_extraction_utils": DemandedFile(
        "FeatureExtractionMixin", "get_feature_extractor_dict", "preprocessor_config.json", "feature extractor"
    ),
}


def install(patches: Patches, note: Note, loop: TrainingLoop) -> None:
    """Do without weights until `patches` is left; `note(slug, name)` is told of each model."""

    def demanding(part: DemandedFile) -> Change:
        return lambda module: _demand_file(patches, module, part)

    changes = {f"transformers.{name}": demanding(part) for name, part in DEMANDED_FILES.items()}
    changes |= {
        "transformers.modeling_utils": Checkpoints(patches, note, loop).install,
        "transformers.tokenization_utils_base": lambda module: _demand_vocabulary(patches, module),
        "transformers.models.auto.tokenization_auto": lambda module: _demand_tokenizer(patches, module),
    }
    change_modules(patches, changes)


class Checkpoints:
    """Checkpoints that are made from the model when there are none of its name."""

    def __init__(self, patches: Patches, note: Note, loop: TrainingLoop) -> None:
        """As for `install`."""
        self._patches, self._note, self._loop = patches, note, loop
        self._directory: str | None = None
        self._made: list[str] = []

    def install(self, modeling: Any) -> None:
        """Into `transformers.modeling_utils`."""
        for owner, name, wrap in (
            (modeling, "_get_resolved_checkpoint_files", self._find),
            (modeling.PreTrainedModel, "_load_pretrained_model", lambda real: staticmethod(self._load(real))),
            (modeling.PreTrainedModel, "save_pretrained", self._save),
        ):
            self._patches.set(owner, name, wrap(getattr(owner, name)))

    def _find(self, find: Callable[..., Any]) -> Callable[..., Any]:
        def get_resolved_checkpoint_files(*args: Any, **kwargs: Any) -> Any:
            """A file that is to become the checkpoint, when there is none of that name on the hub's cache."""
            name = str(kwargs["pretrained_model_name_or_path"])
            try:
                return find(*args, **kwargs)
            except OSError:
                if os.path.isdir(name):
                    raise
                self._note("missing-weights", name)
                return [self._new_file()], None

        return get_resolved_checkpoint_files

    def _load(self, load: Callable[..., Any]) -> Callable[..., Any]:
        def load_pretrained_model(model: Any, state_dict: Any, checkpoint_files: Any, *args: Any, **kwargs: Any) -> Any:
            """Write the checkpoint of the model that the configuration made, without its tied weights."""
            if checkpoint_files and checkpoint_files[0] in self._made:
                tied = getattr(model, "all_tied_weights_keys", {})
                weights = {name: tensor for name, tensor in model.state_dict().items() if name not in tied}
                write_without_data(weights, checkpoint_files[0], {"format": "pt"})
            return load(model, state_dict, checkpoint_files, *args, **kwargs)

        return load_pretrained_model

    def _save(self, save: Callable[..., Any]) -> Callable[..., Any]:
        @wraps(save)
        def save_pretrained(model: Any, *args: Any, **kwargs: Any) -> Any:
            """What it copies or converts on the card belongs to the phase of saving."""
            with self._loop.within(Phase.SAVE):
                return save(model, *args, **kwargs)

        return save_pretrained

    def _new_file(self) -> str:
        """A checkpoint of float32, which is what those are whose configuration names no dtype."""
        if self._directory is None:
            self._directory = self._patches.enter_context(TemporaryDirectory())
        self._made.append(os.path.join(self._directory, f"{len(self._made)}.safetensors"))
        write_without_data({"weight": torch.empty(1, device="meta")}, self._made[-1], {"format": "pt"})
        return self._made[-1]


def _demand_file(patches: Patches, module: Any, part: DemandedFile) -> None:
    owner = getattr(module, part.owner)
    find = getattr(owner, part.finder).__func__

    def find_or_say(cls: type[Any], /, name: Any, **kwargs: Any) -> Any:
        file = kwargs.get("_configuration_file", part.file)
        try:
            return find(cls, name, **kwargs)
        except OSError as error:
            if os.path.exists(name):
                raise
            raise MissingFiles(f"The {part.what} of {name} is", f"{name} {file}") from error

    patches.set(owner, part.finder, classmethod(find_or_say))


def _demand_vocabulary(patches: Patches, module: Any) -> None:
    """transformers makes a tokenizer of no words rather than none: its texts would have other lengths."""
    make = module.PreTrainedTokenizerBase._from_pretrained.__func__

    def from_pretrained(cls: Any, files: dict[str, Any], name: Any, *args: Any, **kwargs: Any) -> Any:
        if cls.vocab_files_names and not any(files.values()) and not os.path.exists(name):
            raise _missing_tokenizer(name)
        return make(cls, files, name, *args, **kwargs)

    patches.set(module.PreTrainedTokenizerBase, "_from_pretrained", classmethod(from_pretrained))


def _demand_tokenizer(patches: Patches, module: Any) -> None:
    make = module.AutoTokenizer.from_pretrained.__func__

    def from_pretrained(cls: Any, name: Any, *args: Any, **kwargs: Any) -> Any:
        try:
            return make(cls, name, *args, **kwargs)
        except MissingFiles as error:
            raise _missing_tokenizer(name) from error

    patches.set(module.AutoTokenizer, "from_pretrained", classmethod(from_pretrained))


def _missing_tokenizer(name: Any) -> MissingFiles:
    return MissingFiles(f"The tokenizer of {name} is", f'{name} --include "*.json" "*.txt" "*.model"')
