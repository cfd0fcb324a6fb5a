"""The optimizer steps in the backward pass, so that not all gradients are there at once."""

import re
from collections.abc import Iterator

from peaksight.planning.kind import FixKind, Proposal
from peaksight.planning.script_text import text_of_script
from peaksight.planning.situation import Situation
from peaksight.records.findings import Effect

# Those of torch.optim that update each parameter by its own gradient alone.
_ONE_BY_ONE = set("Adam AdamW NAdam RAdam Adamax Adagrad Adadelta Adafactor SGD RMSprop ASGD Rprop".split())
_READS_GRADIENTS = re.compile(r"^grad$|no_sync")
# Of the peak, what gradients have to be.
_MIN_SHARE = 0.02


def _propose(situation: Situation) -> Iterator[Proposal]:
    rows = [row for row in situation.optimizers if not row.frozen]
    if sum(row.parameter_bytes for row in rows) < _MIN_SHARE * situation.capture.peak_allocated_bytes:
        return
    if not all(row.kind in _ONE_BY_ONE for row in rows):
        return
    why = _objection(situation)
    if why:
        yield FIX.not_applied(why)
        return
    yield FIX.candidate("gradients", "batch", cautions=("nothing may read gradients after the backward pass",))


def _objection(situation: Situation) -> str:
    """Why it is not to be made, empty if nothing speaks against it."""
    capture = situation.capture
    last = max((step.step for step in capture.steps if step.complete), default=0)
    if capture.world_size > 1:
        return "gradients are averaged over the ranks before a step"
    if len({row.optimizer for row in situation.optimizers}) > 1:
        return "there are several optimizers, and a backward pass may reach the parameters of another one"
    if sum(backward.step == last for backward in capture.backwards) > 1:
        return "a step adds up the gradients of several backward passes"
    if text_of_script(situation).names(_READS_GRADIENTS):
        return "the script reads gradients, maybe after the backward pass"
    return ""


FIX = FixKind(
    slug="optimizer-in-backward",
    title="optimizer in the backward pass",
    effect=Effect.ROUNDING,
    text=(
        "A hook updates each parameter as soon as its gradient is complete and frees that, so that gradients are never "
        "all there, and foreach has one parameter to make temporaries for. The same formula. It needs one backward "
        "pass for each step, one optimizer, and nothing that looks at all gradients: no clipping, no GradScaler, no "
        "average over ranks. A plan with it stops a script that does such a thing."
    ),
    propose=_propose,
)
