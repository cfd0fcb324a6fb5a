"""What passes between stages: frozen dataclasses. No torch, no logic."""

from peaksight.records.capture import (
    Allocation,
    Approximation,
    Capture,
    Category,
    Phase,
    Role,
    ScratchWrite,
    StepPeak,
    Versions,
)
from peaksight.records.report import Gpu, Holder, OutOfMemory, Peak, Report, StepReport
from peaksight.records.script import ScriptCommand

__all__ = [
    "Allocation",
    "Approximation",
    "Capture",
    "Category",
    "Gpu",
    "Holder",
    "OutOfMemory",
    "Peak",
    "Phase",
    "Report",
    "Role",
    "ScratchWrite",
    "ScriptCommand",
    "StepPeak",
    "StepReport",
    "Versions",
]
