"""The settings of the caching allocator, as `PYTORCH_ALLOC_CONF` gives them."""

import sys
from dataclasses import dataclass, fields, replace
from typing import Any

from peaksight.allocator.sizes import LARGE_BUFFER
from peaksight.units import MIB

# One for each power of two from 1 MiB to 32 GiB; the last also serves what is larger.
ROUNDUP_INTERVALS = 16


@dataclass(frozen=True, slots=True, kw_only=True)
class Settings:
    """What `AcceleratorAllocatorConfig` and `CUDAAllocatorConfig` hold that changes device memory.

    The three sizes in bytes are whole MiB. `max_split_size_bytes` None is no limit. `roundup_power2_divisions` are the
    divisions of 16 intervals, 0 and 1 being off. `per_process_memory_fraction` 1.0 is no cap.
    """

    expandable_segments: bool = False
    max_split_size_bytes: int | None = None
    max_non_split_rounding_bytes: int = LARGE_BUFFER
    roundup_power2_divisions: tuple[int, ...] = (0,) * ROUNDUP_INTERVALS
    garbage_collection_threshold: float = 0.0
    large_segment_size_bytes: int = LARGE_BUFFER
    per_process_memory_fraction: float = 1.0
    throw_on_cudamalloc_oom: bool = False

    @property
    def max_split_size(self) -> int:
        """`max_split_size_bytes`, as a size that no block reaches where there is no limit."""
        return sys.maxsize if self.max_split_size_bytes is None else self.max_split_size_bytes


_DEFAULTS = Settings()


def settings_text(settings: Settings) -> str:
    """The text of what differs from the defaults: `parse_settings` reads it as `settings`."""
    defaults = replace(_DEFAULTS, max_non_split_rounding_bytes=settings.large_segment_size_bytes)
    values = {field.name: getattr(settings, field.name) for field in fields(Settings)}
    return ",".join(_pair(name, value) for name, value in values.items() if value != getattr(defaults, name))


def settings_in_snapshot(settings: Settings) -> dict[str, Any]:
    """As `torch.cuda.memory._snapshot()` tells them; those of pinned memory are torch's defaults."""
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


def _pair(name: str, value: Any) -> str:
    if name == "roundup_power2_divisions":
        return f"{name}:{_divisions_text(value)}"
    if name.endswith("_bytes"):
        return f"{name.removesuffix('_bytes')}_mb:{value // MIB}"
    return f"{name}:{value}"


def _divisions_text(divisions: tuple[int, ...]) -> str:
    if len(set(divisions)) == 1:
        return str(divisions[0])
    return "[" + ",".join(f"{1 << index}:{division}" for index, division in enumerate(divisions)) + "]"
