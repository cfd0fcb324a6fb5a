"""What a recorded training run leaves beside its tensors: the facts of each optimizer step."""

from dataclasses import dataclass
from typing import Literal

from peaksight.records.plan import Change

# How many digests there are of a sample: those of many are added up, so that neither order nor grouping counts.
DIGESTS = 2**128

Masks = Literal["own", "mean", "uniform"]
Outcome = Literal["stopped", "ended", "failed"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Job:
    """How a script is run for verification.

    `directory` receives the recording. `steps` is after how many optimizer steps the script is stopped. `double` runs
    it in float64. `masks` of dropout are its own, their mean, or made of `torch.rand`. `weights` is the recording
    whose initial weights, buffers and random state the run starts from, empty for its own. `nudge` moves the weights
    along a fixed direction by that fraction of their size, for the slope of the loss. `changes` are those of a plan.
    """

    directory: str
    steps: int
    double: bool = False
    masks: Masks = "own"
    weights: str = ""
    nudge: float = 0.0
    changes: tuple[Change, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class Column:
    """One tensor that the model was called with in a step: what its samples are, in no order.

    `samples` counts its rows; `digest` is the sum of the digests of its rows, modulo `DIGESTS`, in hexadecimal.
    """

    name: str
    samples: int
    digest: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Dropout:
    """Random masks of one rate: how many elements were drawn in a step."""

    rate: float
    elements: int


@dataclass(frozen=True, slots=True, kw_only=True)
class TrainingStep:
    """One optimizer step, with what led to it.

    `losses` has what each `backward()` was called on, `tokens` the supervised targets of each call of a loss function,
    `lrs` the learning rates of the parameter groups, `schedulers` the class and number of steps of each scheduler.
    `without_gradient` are trainable parameters whose gradient was None. `slope` is the gradient along the fixed
    direction of `Job.nudge`, before clipping, in the first step. `random_state` digests the generators after the step.
    """

    losses: tuple[float, ...] = ()
    samples: int = 0
    tokens: tuple[int, ...] = ()
    columns: tuple[Column, ...] = ()
    lrs: tuple[float, ...] = ()
    optimizer_steps: int = 0
    schedulers: tuple[tuple[str, int], ...] = ()
    without_gradient: tuple[str, ...] = ()
    checkpointed_regions: int = 0
    clippings: int = 0
    dropout: tuple[Dropout, ...] = ()
    autocast: str = ""
    slope: float | None = None
    random_state: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class TrainingRun:
    """One rank of a recorded run.

    `trainable` counts trainable parameter elements. `own_weights` says whether the initial weights were those of
    `Job.weights` without copying them, None where there was nothing to compare. `sources` digests the script and the
    modules that it imported from beside it. `error` is the traceback of a script that failed,
    `without_effect` the kinds of changes of a plan that did nothing.
    """

    rank: int
    world_size: int
    outcome: Outcome
    steps: tuple[TrainingStep, ...]
    trainable: int
    random_state_at_start: str
    own_weights: bool | None
    unmatched_weights: tuple[str, ...]
    running_statistics: bool
    device: str
    sources: str
    error: str = ""
    without_effect: tuple[str, ...] = ()
