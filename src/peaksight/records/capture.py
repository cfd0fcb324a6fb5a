"""A capture: every allocation of one run, with what was known at its birth."""

from dataclasses import dataclass
from enum import StrEnum


class Phase(StrEnum):
    """What the training loop was doing."""

    INIT = "init"
    FORWARD = "forward"
    BACKWARD = "backward"
    OPTIMIZER = "optimizer"
    EVALUATION = "evaluation"
    SAVE = "save"
    OTHER = "other"


class Role(StrEnum):
    """What a storage turned out to be for: a fact seen during the run, not a conclusion."""

    PARAMETER = "parameter"
    GRADIENT = "gradient"
    OPTIMIZER_STATE = "optimizer_state"
    BUFFER = "buffer"
    INPUT = "input"
    WORKSPACE = "workspace"
    COMMUNICATION = "communication"
    UNMARKED = "unmarked"


class Category(StrEnum):
    """What a byte at the peak is for, as reports show it."""

    PARAMETER = "parameter"
    GRADIENT = "gradient"
    OPTIMIZER_STATE = "optimizer_state"
    ACTIVATION = "activation"
    TEMPORARY = "temporary"
    INPUT = "input"
    BUFFER = "buffer"
    WORKSPACE = "workspace"
    COMMUNICATION = "communication"
    OTHER = "other"


@dataclass(frozen=True, slots=True, kw_only=True)
class Allocation:
    """One block of the caching allocator, from hand-out to free.

    `born` and `died` count allocator calls of the device (an allocation or a free is one tick); `died` is None
    for a block alive at the end. `allocated_bytes` is the size of the block, `requested_bytes` what was asked.
    `source` is the person's own innermost line (`train.py:88`), for backward the line of the forward; `library`
    is the innermost frame outside torch's dispatcher (`torch/nn/modules/linear.py:134`). Both may be empty.
    `grad_enabled` tells whether autograd was recording. `module` is the path of the running module (FQN).
    """

    born: int
    died: int | None
    requested_bytes: int
    allocated_bytes: int
    stream: int
    step: int
    phase: Phase
    role: Role
    grad_enabled: bool
    op: str
    module: str
    source: str
    library: str


@dataclass(frozen=True, slots=True, kw_only=True)
class StepPeak:
    """The peaks of one training step; `step` counts from 1, ticks as in `Allocation`.

    `complete` is False for what came after the last optimizer step: a tail, or a run without any.
    `backward_began` lists the ticks at which a backward pass of this step started.
    """

    step: int
    first_tick: int
    last_tick: int
    backward_began: tuple[int, ...]
    peak_allocated_bytes: int
    peak_reserved_bytes: int
    complete: bool = True


@dataclass(frozen=True, slots=True, kw_only=True)
class Approximation:
    """Something that was not simulated exactly; `bytes` is its size, None when unknown."""

    slug: str
    what: str
    bytes: int | None


@dataclass(frozen=True, slots=True, kw_only=True)
class ScratchWrite:
    """A change that was kept from the person's files.

    `path` is relative to the working directory where it is below it; that of a directory ends in `/`. `kind` is
    `written` or `deleted`, `bytes` the size of the file written, 0 for a deletion.
    """

    path: str
    bytes: int
    kind: str = "written"


@dataclass(frozen=True, slots=True, kw_only=True)
class Versions:
    """The installed torch, whose Python code ran, and the build whose device rules were simulated."""

    installed: str
    device_rules: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Capture:
    """One simulated run on one device.

    `allocations` are in order of birth. `peak_tick` is the tick of the first allocation that reached
    `peak_allocated_bytes`. `finished` says why the run ended: `script` (its end), `steady` (two steps alike),
    `steps` (as many as asked), `unsteady` (twenty steps that never agree), `interrupted` or `failed`.
    """

    argv: tuple[str, ...]
    gpu: str
    versions: Versions
    allocations: tuple[Allocation, ...]
    steps: tuple[StepPeak, ...]
    peak_tick: int
    peak_allocated_bytes: int
    peak_reserved_bytes: int
    peak_requested_bytes: int
    peak_active_bytes: int
    not_simulated: tuple[Approximation, ...]
    writes: tuple[ScratchWrite, ...]
    finished: str
    script_exit: int
    seconds: float
