"""What sizes have to do with each other: parameters, gradients, optimizer state, KV cache, what is free."""

import re
from collections.abc import Iterator, Sequence

from peaksight.postmortem.claims.rows import NUMBER, UNITS, number
from peaksight.records import Check, Claim, Fact

_GB = 10**9
_SLACK = 1.1
_PARAMETERS = re.compile(r"\b(?:model|parameters?|params?|weights?)\b|\d(?:\.\d+)?B\b", re.I)
_NOT_PARAMETERS = re.compile(r"gradient|optimi[sz]er|adam|activation|cache|total|memory usage|utili[sz]ation", re.I)
_BILLIONS = re.compile(r"(?<![\w.])(\d+(?:\.\d+)?)\s?B\b(?!\s?(?:/|GB))")
_DTYPES = ((re.compile(r"fp32|float32", re.I), 4), (re.compile(r"fp16|bf16|bfloat16|float16|half", re.I), 2))
_ASKED = re.compile(rf"(?:trying|tried) to allocate(?:\*\*)?:?\s?(?:\*\*)?\s?({NUMBER})\s?(GB|MB|GiB|MiB)", re.I)
_FREE = re.compile(rf"(?:only )?({NUMBER})\s?(GB|MB|GiB|MiB) (?:is |are )?free", re.I)
_CARD = re.compile(r"\((\d{1,3})\s?(GB|GiB)\)|(\d{1,3})\s?(GB|GiB)\s?(?:GPU|VRAM|card|limit)", re.I)
_WITH = re.compile(r"^with(out)?\s+(.{3,30})$", re.I)


def check_relations(text: str, rows: Sequence[Claim], facts: tuple[Fact, ...]) -> Iterator[Check]:
    """What cannot be true together by what these things are."""
    yield from _free(text)
    yield from _named_parameters(rows)
    for block in _blocks(rows):
        yield from _optimizer(block)
        yield from _gradients(block)
    yield from _all_gradients(text, rows)
    yield from _kv_cache(text, rows, facts)
    yield from _with_and_without(rows)


def _blocks(rows: Sequence[Claim]) -> list[list[Claim]]:
    blocks: dict[int, list[Claim]] = {}
    for row in rows:
        blocks.setdefault(row.block, []).append(row)
    return list(blocks.values())


def _size(amount: str, unit: str) -> float:
    return number(amount) * UNITS[unit.lower()]


def _free(text: str) -> Iterator[Check]:
    """A request that fails although more is free; and all that is named beside the card's size."""
    asked, free = _ASKED.search(text), _FREE.search(text)
    if not asked or not free:
        return
    wanted, left = _size(asked[1], asked[2]), _size(free[1], free[2])
    if left > wanted:
        said = f"{free[1]} {free[2]} free, {asked[1]} {asked[2]} asked: not a plain shortage"
        yield Check(
            name="free-but-refused",
            text=f"{said}. A cap, WSL2 or another process must be involved, or a figure is wrong.",
            holds=False,
        )
    yield from _beside_the_card(text, wanted)


def _beside_the_card(text: str, wanted: float) -> Iterator[Check]:
    used = re.search(rf"=\s?({NUMBER})\s?(GB|GiB)", text)
    card = _CARD.search(text)
    if used and card:
        whole = number(card[1] or card[3]) * _GB
        total = _size(used[1], used[2]) + wanted
        if total < whole * 0.97:
            said = (
                f"{used[1]} {used[2]} used + {wanted / _GB:.2f} GB asked = {total / _GB:.2f} GB < {whole / _GB:.0f} GB"
            )
            yield Check(name="less-than-the-card", text=f"{said}: by these figures it fits the card.", holds=False)


def _named_parameters(rows: Sequence[Claim]) -> Iterator[Check]:
    """`Mistral-7B: 14 GB (fp16)`: billions of parameters times bytes each."""
    for row in rows:
        match = _BILLIONS.search(row.label.replace("-", " "))
        width = next((width for pattern, width in _DTYPES if pattern.search(row.label)), None)
        if not match or width is None or _NOT_PARAMETERS.search(row.label):
            continue
        expected = float(match[1]) * _GB * width
        holds = row.low_bytes / _SLACK <= expected * 1.06 and expected * 0.94 <= row.high_bytes * _SLACK
        text = (
            f"{match[1]} B parameters x {width} B = {expected / _GB:.3g} GB; the text says {row.printed} ({row.label})."
        )
        yield Check(name="parameters", text=text, holds=holds)


def _parameters(block: Sequence[Claim]) -> list[Claim]:
    """The rows of parameters; of those that say so only the trainable ones."""
    found = [row for row in block if _PARAMETERS.search(row.label) and not _NOT_PARAMETERS.search(row.label)]
    trainable = [row for row in block if "trainable" in row.label.lower()]
    return trainable or [row for row in found if "frozen" not in row.label.lower()]


def _optimizer(block: list[Claim]) -> Iterator[Check]:
    """Adam keeps two values for each trainable parameter, in its type or a wider one."""
    model = sum(row.high_bytes for row in _parameters(block))
    for row in block:
        if model and re.search(r"adam", row.label, re.I) and not re.search(r"8.?bit|adafactor", row.label, re.I):
            holds = row.high_bytes * _SLACK >= 2 * model
            text = (
                f"AdamW keeps two values a parameter: {model / _GB:.3g} GB of parameters need {2 * model / _GB:.3g} "
                f"GB of "
                f"state in the same type; the text says {row.printed}."
            )
            yield Check(name="adam-state", text=text, holds=holds)


def _gradients(block: list[Claim]) -> Iterator[Check]:
    """There is one gradient a trainable parameter: no more than twice its bytes, in fp32 beside half precision."""
    model = sum(row.high_bytes for row in _parameters(block))
    for row in block:
        if model and re.match(r"gradients?\b", row.label, re.I):
            yield _gradient(row, model)


def _gradient(row: Claim, model: float) -> Check:
    holds = row.high_bytes <= 2 * model * _SLACK
    text = (
        f"Gradients are as many as trainable parameters: at most {2 * model / _GB:.3g} GB beside {model / _GB:.3g} GB"
    )
    return Check(name="gradients", text=f"{text}; the text says {row.printed}.", holds=holds)


def _all_gradients(text: str, rows: Sequence[Claim]) -> Iterator[Check]:
    """Gradients in a block that names no parameters, against those that the text names elsewhere."""
    named = [_size(m[1], m[2]) for m in re.finditer(rf"({NUMBER})\s?(GB|MB) (?:of )?param(?:eter)?s", text, re.I)]
    if not named:
        return
    for block in _blocks(rows):
        if not _parameters(block):
            for row in block:
                if re.match(r"gradients?\b", row.label, re.I):
                    yield _gradient(row, sum(named))


def _kv_cache(text: str, rows: Sequence[Claim], facts: tuple[Fact, ...]) -> Iterator[Check]:
    """The cache by the model's dimensions: 2 x layers x kv heads x head dim x 2 bytes a token."""
    sizes = {fact.name: fact.value for fact in reversed(facts)}
    layers, heads, dim = (sizes.get(f"model_{name}") for name in ("layers", "kv_heads", "head_dim"))
    claimed = [row for row in rows if re.match(r"kv cache", row.label, re.I) and row.high_bytes > 0]
    if not claimed or not (layers and heads and dim):
        return
    token = 2 * layers * heads * dim * 2
    batch = _batch(text, facts)
    tokens = sum(_lengths(text)) if sizes.get("model_encoder_decoder") else max(_lengths(text), default=0)
    for row in claimed[:2]:
        implied = row.high_bytes / token
        limit = batch * tokens if tokens else 65536 * batch
        expected = (
            f"batch {batch} x {tokens} tokens make {limit * token / _GB:.3g} GB" if tokens else "more than 65,536"
        )
        size = f"{layers} layers, {heads} KV heads of {dim}, 2 bytes"
        said = f"{row.printed.lstrip('~')} of KV cache are {implied:,.0f} tokens ({size})"
        holds = implied <= 1.3 * limit
        yield Check(
            name="kv-cache", text=f"{said}; {expected}{'' if tokens else f' a sample at batch {batch}'}.", holds=holds
        )


def _batch(text: str, facts: tuple[Fact, ...]) -> int:
    """The first batch size that stands behind an equals sign, else the first at all."""
    match = re.search(r"batch(?:[_ ]size)?\s?=\s?(\d{1,5})\b", text, re.I)
    return int(match[1]) if match else next((fact.value for fact in facts if fact.name == "batch"), 1)


def _lengths(text: str) -> list[int]:
    """The sequence lengths of the text: `seq_len=256/512`, or `seq_len=2048`."""
    match = re.search(r"seq(?:uence)?[_ ]?len(?:gth)?s?\s?=\s?(\d{2,6})(?:/(\d{2,6}))?", text, re.I)
    return [int(group) for group in match.groups() if group] if match else []


def _with_and_without(rows: Sequence[Claim]) -> Iterator[Check]:
    """`With X: 34GB`, `Without X: 26GB`: the difference is X, which may have another size elsewhere."""
    pairs: dict[str, dict[bool, Claim]] = {}
    for row in rows:
        if match := _WITH.match(row.label):
            pairs.setdefault(match[2].lower(), {})[bool(match[1])] = row
    for name, pair in pairs.items():
        if len(pair) == 2:
            difference = pair[False].high_bytes - pair[True].high_bytes
            yield from _other_sizes(name, difference, rows)


def _other_sizes(name: str, difference: int, rows: Sequence[Claim]) -> Iterator[Check]:
    for row in rows:
        own = re.sub(r"\s?\(.*", "", row.label.lower())
        if own == name and row.high_bytes > 0 and abs(row.high_bytes - difference) > 0.1 * difference:
            text = (
                f"{name}: {row.printed} in line {row.line}, but {difference / _GB:.3g} GB is the difference of "
                f"with and without."
            )
            yield Check(name="said-twice", text=text, holds=False)
