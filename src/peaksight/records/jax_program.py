"""What a jitted program of JAX is: its memory at the peak, and the facts that rules read. No types of JAX."""

from dataclasses import dataclass
from enum import StrEnum

from peaksight.records.phases import Phase


class Kind(StrEnum):
    """What memory is for."""

    ARGUMENT = "argument"
    CONSTANT = "constant"
    OUTPUT = "output"
    TEMPORARY = "temporary"


@dataclass(frozen=True, slots=True, kw_only=True)
class LiveValue:
    """A buffer that is alive at the peak.

    `tensor` is `bfloat16[32, 816, 2048]`, `primitive` what makes it, `scope` the name scopes of that equation, `source`
    its line in the user's code and `argument` the path of an argument: each empty where there is none.
    """

    bytes: int
    kind: Kind
    tensor: str
    primitive: str = ""
    scope: str = ""
    source: str = ""
    argument: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class ArgumentFact:
    """An argument, by its `path` such as `state.params['w']`.

    Where it `is_returned` it comes out as it went in, where it `is_changed` an output of its shape and type is its next
    value, and where it `is_written` an output is in its memory. `cast_to` is the type to which everything that reads it
    casts it first, at `cast_at`; empty where something reads it as it is.
    """

    path: str
    tensor: str
    bytes: int
    is_donated: bool
    is_returned: bool
    is_changed: bool
    is_written: bool
    cast_to: str = ""
    cast_at: str = ""

    @property
    def axes(self) -> tuple[int, ...]:
        """Its shape."""
        sizes = self.tensor.partition("[")[2].rstrip("]")
        return tuple(int(size) for size in sizes.split(",") if size.strip())


@dataclass(frozen=True, slots=True, kw_only=True)
class ConstantFact:
    """An array that the program carries within it, first read at `at`."""

    tensor: str
    bytes: int
    at: str


@dataclass(frozen=True, slots=True, kw_only=True)
class RematFact:
    """The part of a `jax.checkpoint` that a backward pass runs; `recomputes` is False where all it needs was saved."""

    at: str
    in_loop: bool
    prevents_cse: bool
    recomputes: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class ScanFact:
    """A `jax.lax.scan` at `at` of `length` steps, and the stacks that it keeps for its backward pass.

    `residuals` are their tensors with their bytes, the largest first; `carry_bytes` is one step's carry. Where it
    `is_checkpointed` its body is computed again.
    """

    at: str
    scope: str
    length: int
    residuals: tuple[tuple[str, int], ...]
    carry_bytes: int
    is_checkpointed: bool

    @property
    def residual_bytes(self) -> int:
        """All stacks together."""
        return sum(size for _, size in self.residuals)


def argument_of(path: str) -> str:
    """The argument that a leaf is in: `state` of `state.params['w']`, `args[0]` of `args[0]['w']`."""
    name = path.partition(".")[0].partition("[")[0]
    return path[: path.index("]") + 1] if name == "args" and "]" in path else name


class Change(StrEnum):
    """A change to the program that was simulated."""

    DONATE = "donate"
    NOT_RETURNED = "do not return what does not change"
    CAST_BEFORE = "cast before the call"
    NO_VAIN_GRADIENTS = "no gradients that nothing uses"
    STOP_GRADIENT = "stop_gradient before the frozen forward"
    KEEP_APART = "recompute apart"
    WITHOUT_REMAT = "without jax.checkpoint"
    CHECKPOINT_SCAN = "checkpoint the body of the scan"
    NO_FROZEN_STATE = "no state of frozen parameters"


@dataclass(frozen=True, slots=True, kw_only=True)
class WhatIf:
    """The peak of the program with a change. `about` names the arguments or scopes that it is about, `at` the line.

    `bytes` is the size of what the change takes away or makes smaller, whatever the peak says. `peak_bytes` is what
    liveness says, `compiled_bytes` what XLA plans for the changed program, None where it was not compiled.
    """

    change: Change
    peak_bytes: int
    about: tuple[str, ...] = ()
    at: str = ""
    bytes: int = 0
    compiled_bytes: int | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class RematPolicy:
    """The program with one of `jax.checkpoint_policies`: its peak, and what it multiplies, recomputation included."""

    policy: str
    peak_bytes: int
    flops: int


@dataclass(frozen=True, slots=True, kw_only=True)
class FreezeMention:
    """A line of the user's code that speaks of freezing: `text` is its source."""

    at: str
    text: str


@dataclass(frozen=True, slots=True, kw_only=True)
class MaskFact:
    """A mask over `num_leaves` that the script made at `at` and that is False for all of them.

    With `any` in place of `all` in the function that makes it `num_selected_by_any` would be True. Where the script was
    simulated again like that, `again` is what the job came to, beside what it `was`: its peak, and what its step takes
    in, the state and a batch.
    """

    at: str
    num_leaves: int
    num_selected_by_any: int
    was: "JobFact | None" = None
    again: "JobFact | None" = None


@dataclass(frozen=True, slots=True, kw_only=True)
class JobFact:
    """What a whole job came to; `state_bytes` are the arguments of its training step."""

    peak_bytes: int
    state_bytes: int


@dataclass(frozen=True, slots=True, kw_only=True)
class StopFact:
    """Gradients that are stopped at the line `at`, and the lines behind it where all of them are stopped `again_at`."""

    at: str
    again_at: tuple[str, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class PoolFact:
    """The memory that JAX asks for at its start: a `fraction` of `total_bytes`, of which others hold some already."""

    total_bytes: int
    fraction: float
    preallocates: bool
    others_bytes: int


@dataclass(frozen=True, slots=True, kw_only=True)
class JaxProgram:
    """One jitted function, as called: its peak, what is alive then, and facts about it.

    Outputs of `aliased_bytes` are in the memory of donated arguments. It is defined `at` that line of the script, and
    `trains` where it differentiates. Its arguments lie on a mesh of `mesh_size` devices, 0 without any mesh.
    `compiled_bytes` is what XLA plans for it, None without XLA.
    """

    name: str
    peak_bytes: int
    argument_bytes: int
    constant_bytes: int
    output_bytes: int
    aliased_bytes: int
    temporary_bytes: int
    live: tuple[LiveValue, ...] = ()
    arguments: tuple[ArgumentFact, ...] = ()
    constants: tuple[ConstantFact, ...] = ()
    remats: tuple[RematFact, ...] = ()
    scans: tuple[ScanFact, ...] = ()
    what_ifs: tuple[WhatIf, ...] = ()
    freezes: tuple[FreezeMention, ...] = ()
    masks: tuple[MaskFact, ...] = ()
    stops: tuple[StopFact, ...] = ()
    pool: PoolFact | None = None
    policies: tuple[RematPolicy, ...] = ()
    at: str = ""
    trains: bool = False
    mesh_size: int = 0
    compiled_bytes: int | None = None

    def with_change(self, change: Change) -> tuple[WhatIf, ...]:
        """What was simulated with `change`."""
        return tuple(each for each in self.what_ifs if each.change is change)


@dataclass(frozen=True, slots=True, kw_only=True)
class ProgramCall:
    """A jitted function that a script called `num_calls` times, first in `phase` before or in step `first_step`.

    `peak_bytes` is the most that was in use during a call, with all else that was alive; the others are the program's
    own. Of one that differentiates `flops` are those of its products and convolutions, what is computed again included.
    """

    name: str
    phase: Phase
    first_step: int
    num_calls: int
    peak_bytes: int
    argument_bytes: int
    output_bytes: int
    temporary_bytes: int
    flops: int = 0
