"""Which tensor of one run is which of another: by name, else by the end of the name, else by order."""

from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass

# What wrappers put into a path: data parallelism, torch.compile, activation checkpointing, FSDP.
_WRAPPERS = {"_orig_mod", "_checkpoint_wrapped_module", "_fsdp_wrapped_module"}

Shapes = Mapping[str, tuple[int, ...]]


@dataclass(frozen=True, slots=True, kw_only=True)
class Match:
    """`names` maps each name of the changed run to that of the original; `how` says by what they were matched.

    `missing` are those of the original without a partner, `added` those of the changed run.
    """

    names: dict[str, str]
    how: str
    missing: tuple[str, ...]
    added: tuple[str, ...]


def plain_name(path: str) -> str:
    """`path` without what wrappers add: `module._orig_mod.fc.weight` is `fc.weight`."""
    parts = [part for part in path.split(".") if part not in _WRAPPERS]
    while len(parts) > 1 and parts[0] == "module":
        parts = parts[1:]
    return ".".join(parts)


def match_names(original: Shapes, changed: Shapes) -> Match:
    """Pair tensors of equal shapes; no tensor is used twice."""
    for how, find in (("name", _by_name), ("end of the name", _by_ending), ("order", _by_order)):
        names = find(original, changed)
        if len(names) == len(original) == len(changed):
            return _match(names, how, original, changed)
    return _match(_by_name(original, changed), "name", original, changed)


def _match(names: dict[str, str], how: str, original: Shapes, changed: Shapes) -> Match:
    used = set(names.values())
    return Match(
        names=names,
        how=how,
        missing=tuple(name for name in original if name not in used),
        added=tuple(name for name in changed if name not in names),
    )


def _by_name(original: Shapes, changed: Shapes) -> dict[str, str]:
    return {name: name for name, shape in changed.items() if original.get(name) == shape}


def _by_ending(original: Shapes, changed: Shapes) -> dict[str, str]:
    """One path is the other below something, as in a LightningModule that holds the model."""
    pairs = {}
    for name, shape in changed.items():
        fitting = [other for other in original if _is_ending(name, other) and original[other] == shape]
        if len(fitting) == 1:
            pairs[name] = fitting[0]
    counts = Counter(pairs.values())
    return {name: other for name, other in pairs.items() if counts[other] == 1}


def _is_ending(one: str, other: str) -> bool:
    return one == other or one.endswith("." + other) or other.endswith("." + one)


def _by_order(original: Shapes, changed: Shapes) -> dict[str, str]:
    pairs = zip(changed.items(), original.items(), strict=False)
    return {name: other for (name, shape), (other, other_shape) in pairs if shape == other_shape}
