"""The allocator's settings while it runs: `torch.cuda.memory._set_allocator_settings`, and how snapshots tell them."""

import os
from typing import Any

from peaksight.allocator import parse_settings
from peaksight.allocator.settings import settings_in_snapshot
from peaksight.errors import AllocatorSettingsError
from peaksight.virtual_gpu.memory.devices import Devices

_NOT_SIMULATED = "allocator-not-simulated"


class SettingsAnswers:
    """The C functions, and the text of the settings that were given last."""

    def __init__(self, devices: Devices) -> None:
        """The allocators of `devices` work by those of the environment."""
        self._ledgers = devices.ledgers
        self._text: str | None = None

    def answers(self) -> dict[str, Any]:
        """By name."""
        return {"_accelerator_setAllocatorSettings": self.set, "_accelerator_getAllocatorSettings": lambda: self.text}

    @property
    def text(self) -> str:
        """As the script or the environment gave it."""
        if self._text is not None:
            return self._text
        return os.environ.get("PYTORCH_CUDA_ALLOC_CONF", os.environ.get("PYTORCH_ALLOC_CONF", ""))

    def set(self, text: str) -> None:
        """Go on by the settings of `text`.

        Raises:
            ValueError: torch refuses the text.
            AllocatorSettingsError: it asks for what is not simulated.
        """
        try:
            settings = parse_settings(text, base=self._ledgers[0].allocator.settings)
        except AllocatorSettingsError as error:
            if error.slug == _NOT_SIMULATED:
                raise
            raise ValueError(str(error)) from None
        for ledger in self._ledgers:
            ledger.apply_settings(settings)
        self._text = text

    def in_snapshot(self) -> dict[str, Any]:
        """As `torch.cuda.memory._snapshot()` tells them; those of pinned memory are torch's defaults."""
        return {"PYTORCH_CUDA_ALLOC_CONF": self.text} | settings_in_snapshot(self._ledgers[0].allocator.settings)
