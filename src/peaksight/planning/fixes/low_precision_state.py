"""The state of the optimizer in 8 bits: shown, since it needs another library and trains otherwise."""

from collections.abc import Iterator
from importlib.util import find_spec

from peaksight.planning.kind import FixKind, Proposal
from peaksight.planning.situation import Situation
from peaksight.records import OptimizerFact
from peaksight.records.findings import Effect
from peaksight.units import format_bytes

# What each library calls its 8-bit optimizers.
_CLASSES = {
    "torchao": {"Adam": "torchao.optim.Adam8bit", "AdamW": "torchao.optim.AdamW8bit"},
    "bitsandbytes": {"Adam": "bitsandbytes.optim.Adam8bit", "AdamW": "bitsandbytes.optim.AdamW8bit"},
}
# Of the peak, what the state has to be.
_MIN_SHARE = 0.02


def _propose(situation: Situation) -> Iterator[Proposal]:
    rows = [row for row in situation.optimizers if row.kind in _CLASSES["torchao"] and row.state_dtype == "float32"]
    saved_bytes = sum(row.state_bytes for row in rows) * 3 // 4
    if saved_bytes < _MIN_SHARE * situation.capture.peak_allocated_bytes:
        return
    why = f"{_where()}; about {format_bytes(saved_bytes)} of state would go, which no simulation confirms"
    yield FIX.not_applied(why, _advice(rows[0]))


def _where() -> str:
    installed = [name for name in _CLASSES if find_spec(name)]
    return f"{installed[0]} has it, and has to be asked by the script" if installed else "torchao is not installed"


def _advice(row: OptimizerFact) -> str:
    library = next((name for name in _CLASSES if find_spec(name)), "torchao")
    return f"`{_CLASSES[library][row.kind]}` in place of `torch.optim.{row.kind}`"


FIX = FixKind(
    slug="low-precision-state",
    title="8-bit state of the optimizer",
    effect=Effect.NOISE,
    text=(
        "8-bit optimizers of torchao or bitsandbytes keep the two moments of Adam in a quarter of the bytes, quantised "
        "in blocks. The updates are other ones, about as good in published comparisons. A checkpoint of the "
        "optimizer has another form then. It is shown, not applied."
    ),
    propose=_propose,
)
