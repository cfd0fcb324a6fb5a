"""Sizes by shape and count: attention matrices, workspaces of small matrices, parameters, effective batches."""

import re
from collections.abc import Iterator

from peaksight.postmortem.claims.rows import NUMBER, UNITS, number
from peaksight.records import Check

_GB = 10**9
_ATTENTION = re.compile(r"\[\s?B(?:atch\w*)?,\s?(?:num_heads|n_heads|heads|H|h),\s?(\d{2,6}),\s?(\d{2,6})\s?\]")
_PER_MATRIX = re.compile(rf"~?({NUMBER})\s?(MB|GB|MiB|GiB) per [^.\n]{{0,40}}(?:matrix|map)", re.I)
_LAYERS = re.compile(r"\s?[x\u00d7*]\s?(\d{1,3}) [\w ]{0,12}(?:blocks|layers)\b", re.I)
_BATCH = re.compile(r"batch(?:[_ ]size)?[ =:]{1,3}(\d{1,5})\b", re.I)
_TOKENS = re.compile(r"(\d{2,6}) tokens \((\d{1,4})\s?[x\u00d7*]\s?(\d{1,4}) patches \+ (\d)")
_IMAGE = re.compile(
    r"(\d{2,4})\s?[x\u00d7*]\s?\1 images?[^.\n]{0,30}?patch(?:es)?(?: size)?(?: of)? (\d{1,2})\b"
    r"[^.\n]{0,40}?(\d{2,6}) tokens",
    re.I,
)
_TIMES_MATRIX = re.compile(r"~?(\d{1,3})\s?x (?:the )?matrix size", re.I)
_PER_ITEM = re.compile(rf"per (?:decomp\w*|matrix|eigh\w*|svd|call):?\s?~?({NUMBER})\s?(MB|GB|KB)", re.I)
_SQUARE = re.compile(r"\((?:\s?\d{1,6}\s?,){1,4}\s?(\d{1,6})\s?,\s?(\d{1,6})\s?\)")
_COUNT = re.compile(r"~?(\d+(?:\.\d+)?)\s?(B|M|billion|million)\s(?:params|parameters)", re.I)
_EFFECTIVE = re.compile(
    r"batch[_ -]size(?:: ?int)?[ :=\"',]{1,6}(\d{1,5})\b[\s\S]{0,60}?"
    r"gradient[_ -]accumulation(?:[_ -]steps)?(?:: ?int)?[ :=\"',]{1,6}(\d{1,5})\b[\s\S]{0,60}?"
    r"effective batch(?: size)?(?: of)?[ :=]{1,3}(~?)(\d{1,6})\b",
    re.I,
)
_ADAM_BYTES = 12


def check_sizes(text: str) -> Iterator[Check]:
    """What follows from shapes and counts that the text gives."""
    yield from _attention(text)
    yield from _tokens(text)
    yield from _workspace(text)
    yield from _if_nothing_is_frozen(text)
    yield from _effective_batch(text)


def _attention(text: str) -> Iterator[Check]:
    """A size said of `[B, heads, n, m]`: how many heads it is, and in which type."""
    shape, size, batch = _ATTENTION.search(text), _PER_MATRIX.search(text), _BATCH.search(text)
    if not (shape and size and batch):
        return
    num_bytes = number(size[1]) * UNITS[size[2].lower()]
    one_head = int(batch[1]) * int(shape[1]) * int(shape[2])
    heads = {width: num_bytes / (one_head * width) for width in (4, 2)}
    fitting = [width for width, count in heads.items() if count >= 0.9 and abs(count - round(count)) < 0.1]
    said = f"{size[1]} {size[2]} for {shape[0]} at batch {batch[1]}"
    if fitting:
        readings = " or ".join(f"{round(heads[width])} heads of {width} bytes" for width in fitting)
        layers = _times_layers(text, size, num_bytes)
        yield Check(name="attention-matrix", text=f"{said} are {readings}{layers}.", holds=True)
    else:
        yield Check(name="attention-matrix", text=f"{said} are {heads[4]:.2f} heads in fp32: wrong.", holds=False)


def _times_layers(text: str, size: re.Match[str], num_bytes: float) -> str:
    """`... matrix x 12 blocks`: what that is, and with what dropout keeps of each under autocast."""
    match = _LAYERS.match(text, size.end())
    if match is None:
        return ""
    whole = int(match[1]) * num_bytes
    kept = f"with dropout under autocast a mask and a cast are kept too, 7 bytes for 4: {1.75 * whole / _GB:.3g} GB"
    return f"; {match[1]} times that is {whole / _GB:.3g} GB, {kept}"


def _tokens(text: str) -> Iterator[Check]:
    for match in _TOKENS.finditer(text):
        tokens = int(match[2]) * int(match[3]) + int(match[4])
        shown = f"{match[2]} x {match[3]} + {match[4]} = {tokens} tokens; the text says {match[1]}."
        yield Check(name="tokens", text=shown, holds=tokens == int(match[1]))
    for match in _IMAGE.finditer(text):
        patches = (int(match[1]) // max(1, int(match[2]))) ** 2
        shown = f"Images of {match[1]} pixels have {patches:,} patches of {match[2]}; the text says {match[3]} tokens."
        yield Check(name="tokens", text=shown, holds=int(match[3]) - patches in (0, 1))


def _workspace(text: str) -> Iterator[Check]:
    """A workspace of so many times a small matrix, and a size said of each."""
    times, each = _TIMES_MATRIX.search(text), _PER_ITEM.search(text)
    squares = [int(match[1]) for match in _SQUARE.finditer(text) if match[1] == match[2]]
    if not (times and each and squares):
        return
    expected = int(times[1]) * squares[0] ** 2 * 4
    said = number(each[1]) * UNITS[each[2].lower()]
    shown = f"{times[1]} times a {squares[0]} x {squares[0]} matrix in fp32 is {expected / 1000:.1f} kB"
    holds = said <= 3 * expected
    yield Check(
        name="workspace", text=f"{shown}; the text says {each[1]} {each[2]} each{_off(said / expected)}.", holds=holds
    )


def _off(factor: float) -> str:
    return f", {factor:.0f} times as much" if factor > 3 else ""


def _if_nothing_is_frozen(text: str) -> Iterator[Check]:
    """What the state would be if a filter that should freeze parameters matched none."""
    if not re.search(r"\bfrozen\b|\bfreeze", text, re.I):
        return
    counts = {float(match[1]) * (1e9 if match[2][0] in "Bb" else 1e6) for match in _COUNT.finditer(text)}
    total = sum(counts)
    if total >= 1e8:
        shown = (
            f"{total / 1e9:.2f} B parameters are named: {2 * total / _GB:.1f} GB in half precision, but if "
            f"nothing is frozen"
        )
        state = (
            f"{shown} they take {_ADAM_BYTES * total / _GB:.1f} GB in fp32 with Adam's state: check that the "
            f"frozen set is not empty."
        )
        yield Check(name="if-nothing-is-frozen", text=state, holds=True)


def _effective_batch(text: str) -> Iterator[Check]:
    for match in _EFFECTIVE.finditer(text):
        product, said = int(match[1]) * int(match[2]), int(match[4])
        shown = f"batch {match[1]} x {match[2]} accumulated = {product}; the text says {match[3]}{said}."
        holds = product == said or (bool(match[3]) and abs(product - said) <= 0.05 * said)
        yield Check(name="effective-batch", text=shown, holds=holds)
