"""What the allocator was asked for: every block from hand-out to free, and what else happened to the card's memory."""

from dataclasses import dataclass
from enum import StrEnum

from peaksight.records.phases import Phase


class Role(StrEnum):
    """What a storage turned out to be for: a fact seen during the run, not a conclusion.

    Of one that is UNMARKED the lifetime tells more; nothing tells of one that is UNKNOWN.
    """

    PARAMETER = "parameter"
    GRADIENT = "gradient"
    OPTIMIZER_STATE = "optimizer_state"
    BUFFER = "buffer"
    INPUT = "input"
    WORKSPACE = "workspace"
    COMMUNICATION = "communication"
    UNMARKED = "unmarked"
    UNKNOWN = "unknown"


class Action(StrEnum):
    """What happened to the memory of the card beside allocations and frees of blocks."""

    EMPTY_CACHE = "empty_cache"
    OUTSIDE = "outside"
    ALLOWED = "allowed"
    SETTINGS = "settings"
    FAILED = "failed"
    DONE_WITHOUT = "done_without"


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
    `grad_enabled` tells whether autograd was recording. `module` is the path of the running module (FQN). The operator
    does without a `dispensable` block where the card has no room for it. A `late_free` block was given to NCCL, which
    may keep it for up to 0.1 s longer than the run did. A block that other streams used is `reusable` from a later tick
    than that at which it `died`; None where it was at once.

    `tensor` is the dtype and shape of what it was taken for (`float32[8, 512, 768]`), empty where no tensor was.
    `saved_by` is the autograd node that saves it for its backward (`MmBackward0`), the one that runs last;
    `backward` the number of the first backward pass whose graph has that node, counted from 1 over the whole run. What
    no backward pass of the run came to has 0. Both are known only where `Capture.observed`. `node` is the number of
    that node, and of what is born in a backward pass the number of the node that was running: nodes are numbered from 1
    as a forward makes them, and a backward pass runs them from the highest number down. `copy_of` is the birth of the
    block that a copy was made of, with a cast or with others joined to it; 0 where it is none.
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
    dispensable: bool = False
    late_free: bool = False
    reusable: int | None = None
    tensor: str = ""
    saved_by: str = ""
    backward: int = 0
    node: int = 0
    copy_of: int = 0


@dataclass(frozen=True, slots=True, kw_only=True)
class AllocatorCall:
    """One of `Action`, at its own tick.

    `bytes` are what was taken outside the allocator (OUTSIDE: by the library `what`), may be reserved from here on
    (ALLOWED, 0 is no cap), or could not be had by the operator `what` although every cached block was given back
    (FAILED, on `stream`) and was then done without (DONE_WITHOUT). `what` of SETTINGS is their text, that of
    EMPTY_CACHE the line that asked for it, none where PyTorch did.
    """

    tick: int
    action: Action
    bytes: int = 0
    stream: int = 0
    what: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Failure:
    """Memory that the card could not give, raised in the script as `message`.

    `tick` is the last one before it was raised. `requested_bytes` is what a tensor or a library asked for,
    `allocated_bytes` and `reserved_bytes` what the allocator held, `free_bytes` what the card had left (None: not
    recorded). `source` and `library` are as in `Allocation`; `backward_source` is the line that called the backward
    pass in which it happened, empty outside of one. `number` counts the failures of all cards before it.
    """

    tick: int
    message: str
    requested_bytes: int
    allocated_bytes: int
    reserved_bytes: int
    step: int
    phase: Phase
    op: str
    module: str
    source: str
    library: str
    backward_source: str
    free_bytes: int | None = None
    number: int = 0
