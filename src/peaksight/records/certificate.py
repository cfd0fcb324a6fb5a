"""The certificate: what `peaksight verify --json` prints. The field names are the published schema."""

from dataclasses import dataclass
from typing import Literal

Verdict = Literal["bitwise", "rounding", "noise", "different"]
Kind = Literal["gradient", "parameter", "buffer", "state"]


@dataclass(frozen=True, slots=True, kw_only=True)
class TensorDifference:
    """How far one tensor of the changed run is from that of the original, in one optimizer step of one rank.

    All are Euclidean norms: `norm` of the original, `difference` to the changed run, `repeated` of the original to its
    repetition. Of the runs in float64: `original_error` is how far the original is from its own float64 run,
    `changed_error` how far the changed run is from its own, `exact_difference` how far the two float64 runs are apart.
    `original_rounding` and `changed_rounding` are how far a number in the middle of the tensor is from its float64, in
    relation to the root of the original's mean square: an optimizer may blow up the error of a few. None
    where there was no such run. `resolution` is the relative spacing of the original's numbers. `finite` is False where
    the changed run has NaN or infinity.
    """

    kind: Kind
    name: str
    step: int
    rank: int
    norm: float
    difference: float
    repeated: float
    resolution: float
    bitwise: bool
    finite: bool = True
    original_error: float | None = None
    changed_error: float | None = None
    exact_difference: float | None = None
    original_rounding: float | None = None
    changed_rounding: float | None = None

    @property
    def relative(self) -> float:
        """The difference as a share of the original's norm."""
        return self.difference / self.norm if self.norm else (0.0 if not self.difference else float("inf"))


@dataclass(frozen=True, slots=True, kw_only=True)
class Judged:
    """A tensor with what it may differ by.

    Over one is too far: `exact_excess` of what both compute in exact arithmetic, `rounding_excess` of how coarsely they
    round.
    """

    tensor: TensorDifference
    tolerance: float
    exact_excess: float
    rounding_excess: float

    @property
    def excess(self) -> float:
        """The larger of the two."""
        return max(self.exact_excess, self.rounding_excess)


@dataclass(frozen=True, slots=True, kw_only=True)
class Worst:
    """The tensor that is furthest beyond, or nearest to, what rounding explains.

    `relative` is its difference over its norm, `tolerance` what it may be, likewise. `excess` is how often the
    tolerance it is, as judged: in float64 where there was such a run. None stands for what is not finite.
    """

    kind: Kind
    name: str
    block: str
    step: int
    rank: int
    relative: float | None
    tolerance: float | None
    excess: float | None


@dataclass(frozen=True, slots=True, kw_only=True)
class LossDifference:
    """What `backward()` was called on in the step where it differs most, summed and averaged over the ranks."""

    step: int
    original: float | None
    changed: float | None


@dataclass(frozen=True, slots=True, kw_only=True)
class BlockDifference:
    """The largest relative difference of a gradient in one block, over all steps and ranks.

    `smallest_caught` is the smallest relative error of its gradients that was put in and not taken for the same, None
    where none was caught.
    """

    block: str
    relative: float | None
    smallest_caught: float | None


@dataclass(frozen=True, slots=True, kw_only=True)
class Invariant:
    """A number of the run that should be the same in both; `step` is 0 where it is one of the whole run.

    One that `decides` must be: where it differs, training goes on differently, whatever the recorded tensors say.
    """

    name: str
    original: str
    changed: str
    same: bool
    step: int = 0
    decides: bool = True


@dataclass(frozen=True, slots=True, kw_only=True)
class Mechanism:
    """Something that goes wrong in training only where it happens; what was not `exercised` is not judged."""

    name: str
    original: bool
    changed: bool

    @property
    def exercised(self) -> bool:
        """In either run."""
        return self.original or self.changed


@dataclass(frozen=True, slots=True, kw_only=True)
class Certificate:
    """One answer.

    `noise` names the kind of a verdict of noise. `reasons` say what decided it, `notes` what else a reader has to know.

    `noise_floor` is the largest relative difference between the original and its repetition. `reference` says what the
    float64 runs gave, or why there were none. `weights` says how both came to start from the same.
    """

    schema: str
    original: tuple[str, ...]
    changed: tuple[str, ...]
    verdict: Verdict
    same: bool
    noise: str
    reasons: tuple[str, ...]
    notes: tuple[str, ...]
    worst: Worst | None
    loss: LossDifference | None
    blocks: tuple[BlockDifference, ...]
    smallest_caught: float | None
    noise_floor: float
    invariants: tuple[Invariant, ...]
    mechanisms: tuple[Mechanism, ...]
    steps: int
    ranks: int
    weights: str
    batches: str
    reference: str
    device: str
    torch: str
    seconds: float
