"""Logits of the positions that have a label only."""

import re
from collections.abc import Iterator

from peaksight.planning.kind import FixKind, Proposal
from peaksight.planning.script_text import text_of_script
from peaksight.planning.situation import Situation
from peaksight.records import Phase
from peaksight.records.findings import Effect
from peaksight.units import format_bytes

_SLUG = "labelled-positions"
# Of the peak, what has to go.
_MIN_SHARE = 0.02
# Where transformers computes the loss of a model that is called with labels.
_OWN_LOSS = "transformers/loss/loss_utils.py"
_READS_LOGITS = re.compile(r"(^|_)logits(_|$)")
_BY_HAND = """\
-    loss = F.cross_entropy(lm_head(hidden[:, :-1]).flatten(0, 1), labels[:, 1:].flatten())
+    kept = labels[:, 1:] != -100
+    loss = F.cross_entropy(lm_head(hidden[:, :-1][kept]), labels[:, 1:][kept])"""


def _propose(situation: Situation) -> Iterator[Proposal]:
    """By what the rule on logits found, which knows how many positions have a label."""
    fixes = (fix for finding in situation.report.findings or () for fix in finding.fixes)
    saved_bytes = max((fix.saves_bytes or 0 for fix in fixes if fix.kind == _SLUG), default=0)
    if saved_bytes < _MIN_SHARE * situation.capture.peak_allocated_bytes:
        return
    if not _has_own_loss(situation):
        about = f"about {format_bytes(saved_bytes)} would go by the lifetimes of blocks, which no simulation confirms"
        yield FIX.not_applied(f"the script computes the loss itself; {about}", _BY_HAND)
        return
    yield FIX.candidate("logits", cautions=tuple(_cautions(situation)))


def _has_own_loss(situation: Situation) -> bool:
    """Whether models of transformers were trained by the loss that they compute of labels."""
    return any(
        _OWN_LOSS in a.library and a.grad_enabled and a.phase is Phase.FORWARD for a in situation.capture.allocations
    )


def _cautions(situation: Situation) -> Iterator[str]:
    yield "how many positions have a label differs from batch to batch, and so does the memory"
    if text_of_script(situation).names(_READS_LOGITS):
        yield "the script names logits: those of a training step are None, and reading them fails"


FIX = FixKind(
    slug=_SLUG,
    title="logits of labelled positions only",
    effect=Effect.ROUNDING,
    text=(
        "Positions that the loss ignores (a prompt, padding) have logits as large as the others. With the head applied "
        "to the hidden states of labelled positions only, they have none. The same loss, summed in another order. "
        "Models of transformers that are called with labels and have the loss of the library do so under a plan; their "
        "output has no logits in training then: what reads them fails rather than takes others. Where the script "
        "computes the loss itself, it is shown and not applied. How many positions have a label differs from batch to "
        "batch, and so does the memory."
    ),
    propose=_propose,
)
