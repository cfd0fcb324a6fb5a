"""Parameters, gradients and state of the optimizer over several ranks: shown, with what a rank would be left with."""

from collections.abc import Iterator

from peaksight.planning.kind import FixKind, Proposal
from peaksight.planning.situation import Situation
from peaksight.records.findings import Effect
from peaksight.units import format_bytes

_RANKS = (2, 4, 8)
# Of the peak, what parameters, gradients and state have to be.
_MIN_SHARE = 0.3


def _propose(situation: Situation) -> Iterator[Proposal]:
    rows = situation.optimizers
    if situation.capture.world_size > 1 or not rows:
        return
    trained = sum(row.parameter_bytes for row in rows if not row.frozen)
    held = sum(row.parameter_bytes + row.state_bytes for row in rows) + trained
    if held < _MIN_SHARE * situation.capture.peak_allocated_bytes:
        return
    yield FIX.not_applied(
        f"the script has to start as several ranks. {_saved(held, situation)}, and a block's parameters are there "
        "as a whole while it runs",
        "`fully_shard` for each block and for the model, before the optimizer is made, and a batch divided by "
        "the ranks; `peaksight run --ranks 2` simulates it then",
    )


def _saved(held: int, situation: Situation) -> str:
    """What goes from each rank, for the fewest ranks with which that is as much as is too much, if there are such."""
    enough = (ranks for ranks in _RANKS if held - held // ranks >= situation.excess_bytes)
    ranks = next(enough, _RANKS[-1])
    return (
        f"With {ranks} each would hold {format_bytes(held // ranks)} of the {format_bytes(held)} of parameters, "
        f"gradients and state, {format_bytes(situation.excess_bytes)} being too much now"
    )


FIX = FixKind(
    slug="sharding",
    title="sharded over ranks (FSDP2)",
    effect=Effect.ROUNDING,
    text=(
        "FSDP2's `fully_shard` gives each of N ranks an Nth of parameters, gradients and the optimizer's state; the "
        "parameters of a block are gathered while it runs. The same training, rounded in another order, where the "
        "samples of a step stay the same: the batch of a rank is divided by N. A loss that is a mean over labels is "
        "another one where ranks have different numbers of them. It is shown, not applied: `run --ranks N` simulates a "
        "script that does it."
    ),
    propose=_propose,
)
