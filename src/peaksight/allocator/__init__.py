"""The CUDA caching allocator, simulated. No torch."""

from peaksight.allocator.blocks import Block, BlockState
from peaksight.allocator.caching import CachingAllocator
from peaksight.allocator.device import DeviceOutOfMemory
from peaksight.allocator.replay import Replay, replay
from peaksight.allocator.segments import Segment
from peaksight.allocator.settings import Settings, settings_text
from peaksight.allocator.settings_parser import parse_settings, settings_from_environment
from peaksight.allocator.trace import TraceEvent, read_trace

__all__ = [
    "Block",
    "BlockState",
    "CachingAllocator",
    "DeviceOutOfMemory",
    "Replay",
    "Segment",
    "Settings",
    "TraceEvent",
    "parse_settings",
    "read_trace",
    "replay",
    "settings_from_environment",
    "settings_text",
]
