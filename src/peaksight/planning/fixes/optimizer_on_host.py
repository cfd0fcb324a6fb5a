"""The optimizer's state waits in host memory while the model runs."""

from collections.abc import Iterator

from peaksight.planning.kind import FixKind, Proposal
from peaksight.planning.situation import Situation
from peaksight.records.findings import Effect
from peaksight.units import format_bytes

_SLUG = "optimizer-on-host"
# Of the peak, what the state has to be.
_MIN_SHARE = 0.05


def _propose(situation: Situation) -> Iterator[Proposal]:
    capture = situation.capture
    state_bytes = sum(row.state_bytes for row in situation.optimizers)
    if state_bytes < _MIN_SHARE * capture.peak_allocated_bytes:
        return
    if any(row.kind == "LBFGS" for row in situation.optimizers):
        return
    if situation.is_sharded:
        why = "its state is sharded over the ranks; FSDP's CPUOffloadPolicy keeps it on the host with its parameters"
        yield FIX.not_applied(why)
        return
    caution = f"the host needs {format_bytes(state_bytes)} of pinned memory for each process"
    yield FIX.candidate(_SLUG, title="state of the optimizer in host memory between steps", cautions=(caution,))


FIX = FixKind(
    slug=_SLUG,
    title="the optimizer's state in host memory",
    effect=Effect.BITWISE,
    text=(
        "After each step the state of the optimizer is copied to pinned host memory, and back before the next one. The "
        "same numbers. The forward and the backward pass have its memory; the step itself needs it as before, which "
        "is where the peak may be then. All of it goes over the link twice a step, which with more samples a step is a "
        "smaller share of the time."
    ),
    propose=_propose,
)
