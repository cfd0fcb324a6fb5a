"""Activation checkpointing of the repeated blocks of a model: of all, of every other one, or of as many as needed."""

from collections.abc import Iterator, Sequence

from peaksight.diagnosis.module_blocks import blocks_of_modules
from peaksight.planning.kind import FixKind, Proposal
from peaksight.planning.situation import Situation
from peaksight.records.findings import Effect
from peaksight.records.plan import Change
from peaksight.records.proposals import Candidate

_SLUG = "checkpoint-modules"
# A part of the blocks is checkpointed in as many steps as this, and blocks that hold less than this share in none.
_LEVELS = 4
_MIN_SHARE = 0.02


def _propose(situation: Situation) -> Iterator[Proposal]:
    blocks = _blocks_worth_it(situation)
    if not blocks:
        return
    for level in range(1, _LEVELS + 1):
        count = round(len(blocks) * level / _LEVELS)
        if count and (level == _LEVELS or count < len(blocks)):
            yield _candidate(blocks[:count], len(blocks))
    for group in ("matmuls", "attention"):
        yield _candidate(blocks, len(blocks), save=(group,))


def _blocks_worth_it(situation: Situation) -> tuple[str, ...]:
    """The paths of blocks, in their order, that together save a noticeable part of the peak for the backward pass."""
    checkpointed = {fact.module for fact in situation.capture.checkpoints}
    blocks = blocks_of_modules(situation.saved)
    held = sum(a.allocated_bytes for each in blocks.values() for a in each)
    if held < _MIN_SHARE * situation.capture.peak_allocated_bytes:
        return ()
    return tuple(path for path in blocks if path not in checkpointed)


def _candidate(paths: Sequence[str], total: int, save: tuple[str, ...] = ()) -> Candidate:
    which = f"all {total}" if len(paths) == total else f"{len(paths)} of {total}"
    kept = f", results of {save[0]} kept" if save else ""
    change = Change(kind=_SLUG, parameters={"modules": list(paths), **({"save": list(save)} if save else {})})
    title = f"checkpoint {which} blocks{kept}"
    return Candidate(kinds=(_SLUG,), title=title, slots=("checkpoint",), effect=Effect.BITWISE, changes=(change,))


FIX = FixKind(
    slug=_SLUG,
    title="activation checkpointing",
    effect=Effect.BITWISE,
    text=(
        "The activations inside of a block are freed after its forward and computed again in the backward pass, from "
        "the same random state. Costs one more forward of the block. Running statistics of BatchNorm are kept from "
        "counting a batch twice. What a block does beside returning its result (hooks, counters) happens twice."
    ),
    propose=_propose,
)
