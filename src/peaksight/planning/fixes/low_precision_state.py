"""The state of the optimizer in 8 bits, by a library that has it."""

from collections.abc import Iterator
from importlib.util import find_spec

from peaksight.planning.kind import FixKind, Proposal
from peaksight.planning.situation import Situation
from peaksight.records.findings import Effect
from peaksight.units import format_bytes

# Of torch.optim, those that both libraries have.
_KINDS = {"Adam", "AdamW"}
# What is to be known of a plan with each, the one without temporaries first.
_LIBRARIES = {
    "bitsandbytes": "bitsandbytes has a step for CUDA only, so that verification needs a card",
    "torchao": "torchao compiles its step: on a card it makes fewer temporaries than were simulated",
}
_CAUTION = "a checkpoint of the optimizer has another form, and one in 32 bits is not read"
# Of the peak, what the state has to be.
_MIN_SHARE = 0.02


def _propose(situation: Situation) -> Iterator[Proposal]:
    rows = [row for row in situation.optimizers if row.kind in _KINDS and row.state_dtype == "float32"]
    saved_bytes = sum(row.state_bytes for row in rows) * 3 // 4
    if saved_bytes < _MIN_SHARE * situation.capture.peak_allocated_bytes:
        return
    installed = [library for library in _LIBRARIES if find_spec(library)]
    about = f"about {format_bytes(saved_bytes)} of state would go, which no simulation confirms"
    if situation.is_sharded:
        yield FIX.not_applied(f"its state is sharded over the ranks; {about}")
    elif not installed:
        yield FIX.not_applied(
            f"neither of {' and '.join(_LIBRARIES)} is installed; {about}", "pip install bitsandbytes"
        )
    else:
        for library in installed:
            # Others that change how an optimizer steps know those of torch.optim only.
            yield FIX.candidate(
                *("optimizer", "gradients", "optimizer-on-host"),
                title=f"8-bit state of {library}",
                cautions=(_CAUTION, _LIBRARIES[library]),
                library=library,
            )


FIX = FixKind(
    slug="low-precision-state",
    title="8-bit state of the optimizer",
    effect=Effect.NOISE,
    text=(
        "8-bit optimizers of bitsandbytes or torchao keep the two moments of Adam in a quarter of the bytes, quantised "
        "in blocks. The updates are other ones, about as good in published comparisons: `--class noise` tries it. A "
        "checkpoint of the optimizer has another form then. It needs one of the libraries, and Adam or AdamW of "
        "torch.optim; one with amsgrad or maximize stays as it is."
    ),
    propose=_propose,
)
