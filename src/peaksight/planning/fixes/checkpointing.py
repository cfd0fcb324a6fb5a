"""Activation checkpointing of the repeated blocks of a model: of all, of every other one, or of as many as needed."""

from collections.abc import Iterator, Mapping, Sequence
from itertools import accumulate

from peaksight.diagnosis.module_blocks import blocks_of_modules
from peaksight.planning.kind import FixKind, Proposal
from peaksight.planning.situation import Situation
from peaksight.records.findings import Effect
from peaksight.records.plan import Change
from peaksight.records.proposals import Candidate

_SLUG = "checkpoint-modules"
# Blocks that together hold less than this share of the peak are not worth it.
_MIN_SHARE = 0.02


def _propose(situation: Situation) -> Iterator[Proposal]:
    blocks = _blocks_worth_it(situation)
    if not blocks:
        return
    for count in _counts(blocks, situation.excess_bytes):
        yield _candidate(tuple(blocks)[:count], len(blocks))
    for group in ("matmuls", "attention"):
        yield _candidate(tuple(blocks), len(blocks), save=(group,))


def _counts(blocks: Mapping[str, int], excess_bytes: int) -> list[int]:
    """How many to checkpoint: as many as hold what is too much, one more, half of them, and all."""
    held = list(accumulate(blocks.values()))
    needed = next((count for count, size in enumerate(held, 1) if size >= excess_bytes), len(held))
    return sorted({min(len(held), each) for each in (needed, needed + 1, -(-len(held) // 2), len(held))})


def _blocks_worth_it(situation: Situation) -> dict[str, int]:
    """The blocks, in their order, that together save a noticeable part of the peak for the backward pass, and bytes."""
    checkpointed = {fact.module for fact in situation.capture.checkpoints}
    blocks = blocks_of_modules(situation.saved)
    held = {path: sum(a.allocated_bytes for a in each) for path, each in blocks.items() if path not in checkpointed}
    is_worth_it = sum(held.values()) >= _MIN_SHARE * situation.capture.peak_allocated_bytes
    return held if is_worth_it else {}


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
