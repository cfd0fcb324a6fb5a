"""Which modules of a model are worth checkpointing one by one: its repeated blocks, as their paths show them."""

import re
from collections import Counter
from collections.abc import Iterable, Mapping

from peaksight.diagnosis.module_blocks import blocks_of_modules
from peaksight.planning.situation import Situation

# A block that holds more than this share of all is split: a stage of a convolutional network into its blocks.
_COARSE = 0.25
_WITH_A_NUMBER = re.compile(r"^.*?\.[A-Za-z_]*\d+(?=\.|$)")


def checkpointable_blocks(situation: Situation) -> dict[str, int]:
    """Bytes that the repeated blocks of the model save for the backward pass, in the order in which they run.

    A block has modules in it, is in no other one, and runs nothing checkpointed yet.
    """
    inner = _modules_with_children(situation)
    blocks = {path: 0 for path in blocks_of_modules(situation.saved) if path in inner} or _with_a_number(situation)
    held = _held(situation, blocks)
    total = held.total()
    for path in [path for path, size in held.items() if size > _COARSE * total]:
        blocks = {each: 0 for block in blocks for each in (_split(situation, path) if block == path else [block])}
    return {path: size for path, size in _held(situation, blocks).items() if not _is_checkpointed(situation, path)}


def largest_part(situation: Situation, blocks: Mapping[str, int]) -> tuple[str, dict[str, int]]:
    """The name of the children of `blocks` that hold the most together and have modules in them, and bytes of each."""
    inner = _modules_with_children(situation)
    parts = [path for path in inner if path.rpartition(".")[0] in blocks]
    held = _held(situation, sorted(parts, key=lambda path: list(blocks).index(path.rpartition(".")[0])))
    totals: Counter[str] = Counter()
    for path, size in held.items():
        totals[path.rpartition(".")[2]] += size
    name = max(totals, key=totals.__getitem__, default="")
    return name, {path: size for path, size in held.items() if path.endswith(f".{name}")}


def _modules_with_children(situation: Situation) -> set[str]:
    """Paths of all modules in which another one has parameters."""
    found: set[str] = set()
    for fact in situation.capture.modules:
        words = fact.module.split(".")
        found.update(".".join(words[:count]) for count in range(1, len(words)))
    return found


def _with_a_number(situation: Situation) -> dict[str, int]:
    """Children that are numbered by name only, as `encoder_layer_3` or `denseblock2`."""
    inner = _modules_with_children(situation)
    matches = (_WITH_A_NUMBER.match(path) for path in situation.saved_by_module)
    return {match[0]: 0 for match in matches if match and match[0] in inner}


def _split(situation: Situation, block: str) -> list[str]:
    """The numbered children of `block` that have modules in them, or `block` itself where there are not several."""
    inner = _modules_with_children(situation)
    depth = block.count(".") + 2
    below = (".".join(path.split(".")[:depth]) for path in situation.saved_by_module if path.startswith(f"{block}."))
    children = [path for path in dict.fromkeys(below) if path in inner and path.rpartition(".")[2].isdecimal()]
    return children if len(children) > 1 else [block]


def _held(situation: Situation, blocks: Iterable[str]) -> Counter[str]:
    """What is saved in each of `blocks`."""
    return Counter(
        {
            block: sum(
                size
                for path, size in situation.saved_by_module.items()
                if path == block or path.startswith(f"{block}.")
            )
            for block in blocks
        }
    )


def _is_checkpointed(situation: Situation, path: str) -> bool:
    """By the script, itself or what holds it or something in it."""
    ran = {fact.module for fact in situation.capture.checkpoints}
    return any(path == each or path.startswith(f"{each}.") or each.startswith(f"{path}.") for each in ran if each)
