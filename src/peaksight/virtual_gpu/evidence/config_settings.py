"""Settings of configuration objects of transformers: which line sets one, and whether the object that it sets is read.

A model has its configuration, and parts of it may have copies: those of T5's encoder and decoder are deep copies since
transformers 5, so that `model.config.use_cache = False` reaches neither.
"""

import sys
from collections.abc import Callable
from dataclasses import dataclass
from types import FrameType, ModuleType
from typing import Any

import torch

from peaksight.overlays.late_imports import change_modules
from peaksight.overlays.patches import Patches
from peaksight.records import SettingFact
from peaksight.virtual_gpu.frames import is_ours
from peaksight.virtual_gpu.source_lines import SourceLines, installed_name
from peaksight.virtual_gpu.training.training_loop import TrainingLoop

# What forwards read each time that they are called, and what decides what they return or keep.
SETTINGS = frozenset({"use_cache", "output_hidden_states", "output_attentions"})
# Setting an attribute of a configuration goes through these.
_MACHINERY = ("transformers/configuration_utils.py", "huggingface_hub/dataclasses.py")


@dataclass(slots=True)
class _Setting:
    config: Any
    name: str
    value: Any
    at: str
    num_reads: int = 0


@dataclass(slots=True)
class _Read:
    config: Any
    name: str
    value: Any
    module: str


class ConfigSettings:
    """What the person's lines set, and what modules read while autograd records."""

    def __init__(self, loop: TrainingLoop, lines: SourceLines) -> None:
        """Nothing was set."""
        self._loop, self._lines = loop, lines
        self._set: dict[tuple[int, str], _Setting] = {}
        self._read: dict[tuple[int, str], _Read] = {}

    def install(self, patches: Patches) -> None:
        """Follow the configurations of transformers until `patches` is left."""

        def follow(module: ModuleType) -> None:
            config = module.PretrainedConfig
            patches.set(config, "__setattr__", self._noting_sets(config.__setattr__))
            patches.set(config, "__getattribute__", self._noting_reads(config.__getattribute__))

        change_modules(patches, {"transformers.configuration_utils": follow})

    @property
    def facts(self) -> tuple[SettingFact, ...]:
        """The settings that were made, each as its line left it."""
        return tuple(map(self._fact, self._set.values()))

    def _noting_sets(self, change: Callable[[Any, str, Any], None]) -> Callable[[Any, str, Any], None]:
        def followed(config: Any, name: str, value: Any) -> None:
            change(config, name, value)
            if name in SETTINGS and (at := self._own_line(sys._getframe(1))):
                self._set[id(config), name] = _Setting(config, name, value, at)

        return followed

    def _noting_reads(self, read: Callable[[Any, str], Any]) -> Callable[[Any, str], Any]:
        def followed(config: Any, name: str) -> Any:
            value = read(config, name)
            if name in SETTINGS and self._loop.is_running and torch.is_grad_enabled():
                self._note_read(config, name, value)
            return value

        return followed

    def _note_read(self, config: Any, name: str, value: Any) -> None:
        self._read.setdefault((id(config), name), _Read(config, name, value, self._loop.module))
        if setting := self._set.get((id(config), name)):
            setting.num_reads += 1

    def _own_line(self, frame: FrameType | None) -> str:
        """The line of the person's that assigns an attribute, empty where a library does or an object is set up."""
        while frame is not None and (is_ours(frame.f_code.co_filename) or _is_machinery(frame)):
            if frame.f_code.co_name == "__init__":
                return ""
            frame = frame.f_back
        if frame is None or not self._lines.is_own(frame.f_code.co_filename):
            return ""
        return f"{self._lines.name_of(frame.f_code.co_filename)}:{frame.f_lineno}"

    def _fact(self, setting: _Setting) -> SettingFact:
        others = [
            read
            for read in self._read.values()
            if read.name == setting.name and read.config is not setting.config and read.value != setting.value
        ]
        elsewhere = "".join(f"{read.module} reads {read.value} from a configuration of its own" for read in others[:1])
        return SettingFact(
            kind=setting.name,
            at=setting.at,
            value=str(setting.value),
            num_reached=setting.num_reads,
            detail=elsewhere,
        )


def _is_machinery(frame: FrameType) -> bool:
    return (installed_name(frame.f_code.co_filename) or "") in _MACHINERY
