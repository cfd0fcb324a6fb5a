"""Logits of the positions that have a label only: shown, for the model's own code makes them."""

from collections.abc import Iterator

from peaksight.planning.kind import FixKind, Proposal
from peaksight.planning.situation import Situation
from peaksight.records.findings import Effect
from peaksight.units import format_bytes

_SLUG = "labelled-positions"
# Of the peak, what has to go.
_MIN_SHARE = 0.02


def _propose(situation: Situation) -> Iterator[Proposal]:
    """By what the rule on logits found, which knows how many positions have a label."""
    fixes = (fix for finding in situation.report.findings or () for fix in finding.fixes)
    saved_bytes = max((fix.saves_bytes or 0 for fix in fixes if fix.kind == _SLUG), default=0)
    if saved_bytes < _MIN_SHARE * situation.capture.peak_allocated_bytes:
        return
    yield FIX.not_applied(
        f"the model computes them; about {format_bytes(saved_bytes)} would go by the lifetimes of blocks, which no "
        "simulation confirms",
        "\n".join(
            (
                "-    loss = F.cross_entropy(lm_head(hidden[:, :-1]).flatten(0, 1), labels[:, 1:].flatten())",
                "+    kept = labels[:, 1:] != -100",
                "+    loss = F.cross_entropy(lm_head(hidden[:, :-1][kept]), labels[:, 1:][kept])",
            )
        ),
    )


FIX = FixKind(
    slug=_SLUG,
    title="logits of labelled positions only",
    effect=Effect.ROUNDING,
    text=(
        "Positions that the loss ignores (a prompt, padding) have logits as large as the others. With the head applied "
        "to the hidden states of labelled positions only, they have none. The same loss, summed in another order. How "
        "many positions have a label differs from batch to batch, and so does the memory. It is shown, not applied."
    ),
    propose=_propose,
)
