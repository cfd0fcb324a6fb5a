"""The state of the optimizer in 8 bits, by torchao where it is installed."""

from collections.abc import Iterator

from peaksight.extras import is_installed
from peaksight.planning.kind import FixKind, Proposal
from peaksight.planning.situation import Situation
from peaksight.records.findings import Effect
from peaksight.units import format_bytes

_KINDS = ("Adam", "AdamW")
# Of the peak, what the state has to be.
_MIN_SHARE = 0.02


def _propose(situation: Situation) -> Iterator[Proposal]:
    rows = [row for row in situation.optimizers if row.kind in _KINDS and row.state_dtype == "float32"]
    saved_bytes = sum(row.state_bytes for row in rows) * 3 // 4
    if saved_bytes < _MIN_SHARE * situation.capture.peak_allocated_bytes:
        return
    if not is_installed("torchao"):
        kind, about = rows[0].kind, f"about {format_bytes(saved_bytes)} of state would go"
        yield FIX.not_applied(
            f"torchao is not installed; {about}, which no simulation confirms",
            f"`pip install torchao` has it tried; by hand `torchao.optim.{kind}8bit` in place of `torch.optim.{kind}`",
        )
        return
    yield FIX.candidate(
        "optimizer",
        cautions=(
            "moments have 8 bits: updates are other ones, and a checkpoint of the optimizer has another form",
            "torchao compiles the step; simulated is the one that is not compiled, which has more temporaries",
        ),
    )


FIX = FixKind(
    slug="low-precision-state",
    title="8-bit state of the optimizer",
    effect=Effect.NOISE,
    text=(
        "The 8-bit optimizers of torchao keep the two moments of Adam in a quarter of the bytes, quantised in blocks. "
        "The updates are other ones, about as good in published comparisons. A checkpoint of the optimizer has another "
        "form then. torchao compiles the step, which a simulation does not: its temporaries are fewer. Where torchao "
        "is not installed it is shown, not applied; bitsandbytes has such optimizers too, whose kernels are its own "
        "and not simulated."
    ),
    propose=_propose,
)
