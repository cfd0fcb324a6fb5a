"""What passes between stages: frozen dataclasses. No torch, no logic."""

from peaksight.records.capture import (
    WITHOUT_ANSWER,
    Action,
    Allocation,
    AllocatorCall,
    Approximation,
    Capture,
    Category,
    Failure,
    NotReached,
    Phase,
    Role,
    ScratchWrite,
    StepPeak,
    Versions,
)
from peaksight.records.report import Gpu, Holder, OutOfMemory, Peak, Report, Retries, StepReport
from peaksight.records.script import ScriptCommand

__all__ = [
    "WITHOUT_ANSWER",
    "Action",
    "Allocation",
    "AllocatorCall",
    "Approximation",
    "Capture",
    "Category",
    "Failure",
    "Gpu",
    "Holder",
    "NotReached",
    "OutOfMemory",
    "Peak",
    "Phase",
    "Report",
    "Retries",
    "Role",
    "ScratchWrite",
    "ScriptCommand",
    "StepPeak",
    "StepReport",
    "Versions",
]
