"""Activation checkpointing of the repeated blocks of a model: of all, of every other one, or of as many as needed."""

import re
from collections.abc import Iterator, Mapping, Sequence
from itertools import accumulate
from typing import Any

from peaksight.planning.blocks import checkpointable_blocks, largest_part
from peaksight.planning.kind import FixKind, Proposal
from peaksight.planning.situation import Situation
from peaksight.records.findings import Effect
from peaksight.records.proposals import Candidate

# Blocks that together hold less than this share of the peak are not worth it.
_MIN_SHARE = 0.02
# A child that holds more than this share of its block is as good as the block.
_MOST = 0.9
# Which node saves something where there are results of a group to keep.
_SAVED_BY = {
    "matmuls": re.compile(r"^(Addmm|Mm|Bmm|Baddbmm)Backward"),
    "attention": re.compile(r"^(ScaledDotProduct|FlashAttention|EfficientAttention)"),
    "convolutions": re.compile("^(Cudnn)?Convolution"),
}


def _propose(situation: Situation) -> Iterator[Proposal]:
    blocks = _worth_it(situation, checkpointable_blocks(situation))
    if not blocks:
        return
    for count in _counts(blocks, situation.excess_bytes):
        yield _candidate(tuple(blocks)[:count], len(blocks))
    inside = tuple(f"{path}." for path in blocks)
    saved_by = {a.saved_by for a in situation.saved if f"{a.module}.".startswith(inside)}
    for group, node in _SAVED_BY.items():
        if any(node.search(each) for each in saved_by):
            yield _candidate(tuple(blocks), len(blocks), save=(group,))
    yield from _of_parts(situation, blocks)


def _counts(blocks: Mapping[str, int], excess_bytes: int) -> list[int]:
    """How many to checkpoint: as many as hold what is too much, one more, half of them, and all."""
    held = list(accumulate(blocks.values()))
    needed = next((count for count, size in enumerate(held, 1) if size >= excess_bytes), len(held))
    return sorted({min(len(held), each) for each in (needed, needed + 1, -(-len(held) // 2), len(held))})


def _worth_it(situation: Situation, blocks: dict[str, int]) -> dict[str, int]:
    """`blocks` where they save a noticeable part of the peak together, else none."""
    is_worth_it = sum(blocks.values()) >= _MIN_SHARE * situation.capture.peak_allocated_bytes
    return blocks if is_worth_it else {}


def _of_parts(situation: Situation, blocks: Mapping[str, int]) -> Iterator[Proposal]:
    """Only the one child of every block that holds the most, as its MLP: less is computed again."""
    name, parts = largest_part(situation, blocks)
    if len(parts) == len(blocks) and _worth_it(situation, parts) and sum(parts.values()) < _MOST * sum(blocks.values()):
        title = f"checkpoint {name} of all {len(parts)} blocks"
        yield FIX.candidate("checkpoint", title=title, modules=list(parts))


def _candidate(paths: Sequence[str], total: int, save: tuple[str, ...] = ()) -> Candidate:
    which = f"all {total}" if len(paths) == total else f"{len(paths)} of {total}"
    kept = f", results of {save[0]} kept" if save else ""
    parameters: dict[str, Any] = {"modules": list(paths)} | ({"save": list(save)} if save else {})
    return FIX.candidate("checkpoint", title=f"checkpoint {which} blocks{kept}", **parameters)


FIX = FixKind(
    slug="checkpoint-modules",
    title="activation checkpointing",
    effect=Effect.BITWISE,
    text=(
        "The activations inside of a block are freed after its forward and computed again in the backward pass, from "
        "the same random state. Costs one more forward of the block, less where the results of matrix products, "
        "attention or convolutions are kept. Running statistics of BatchNorm do not count a batch twice, and a cache "
        "of keys and values gets nothing from such a block. What else a block does beside returning its result "
        "(counters, hooks inside of it) happens twice."
    ),
    propose=_propose,
)
