"""The allocator's settings while it runs: `torch.cuda.memory._set_allocator_settings`, and how snapshots tell them."""

import os
from typing import Any

from peaksight.allocator import Settings, parse_settings
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
        return {"PYTORCH_CUDA_ALLOC_CONF": self.text} | _told(self._ledgers[0].allocator.settings)


def _told(settings: Settings) -> dict[str, Any]:
    divisions = settings.roundup_power2_divisions
    return {
        "max_split_size": -1 if settings.max_split_size_bytes is None else settings.max_split_size_bytes,
        "garbage_collection_threshold": settings.garbage_collection_threshold,
        "expandable_segments": settings.expandable_segments,
        "pinned_num_register_threads": 1,
        "release_lock_on_cudamalloc": False,
        "pinned_use_cuda_host_register": False,
        "graph_capture_record_stream_reuse": False,
        "max_round_threshold": -1,
        "max_cached_size": -1,
        "roundup_power2_divisions": {str(1 << interval): division for interval, division in enumerate(divisions)},
    }
