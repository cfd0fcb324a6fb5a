"""The repeated blocks of a model, as its module paths show them."""

import re
from collections import defaultdict
from collections.abc import Iterable, Mapping

from peaksight.records import Allocation

_NUMBERED = re.compile(r"^(.*?)\.(\d+)(?=\.|$)")


def block_of(module: str) -> str:
    """`Model.blocks.3` of `Model.blocks.3.mlp.fc1`: the outermost of a list; empty outside of one."""
    match = _NUMBERED.match(module)
    return match[0] if match else ""


def blocks_of_modules(allocations: Iterable[Allocation]) -> Mapping[str, tuple[Allocation, ...]]:
    """`allocations` by the block that they are in (`GPT2LMHeadModel.transformer.h.3`).

    A block is a numbered child that has siblings here: the outermost one. What is in none is left out.
    """
    found: dict[tuple[str, str], list[Allocation]] = defaultdict(list)
    for allocation in allocations:
        match = _NUMBERED.match(allocation.module)
        if match:
            found[match[1], match[2]].append(allocation)
    siblings: dict[str, int] = defaultdict(int)
    for parent, _ in found:
        siblings[parent] += 1
    return {f"{parent}.{number}": tuple(held) for (parent, number), held in found.items() if siblings[parent] > 1}
