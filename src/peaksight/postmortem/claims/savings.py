"""What measures are said to save: against the rows that they change, the number of blocks, and each other."""

import re
from collections.abc import Iterator, Sequence
from dataclasses import replace

from peaksight.postmortem.claims.parts import GB, GRADIENTS, OPTIMIZER, Budget, budgets, cards, is_parameters, line_of
from peaksight.postmortem.claims.rows import RANGE, sizes
from peaksight.records import Check, Claim, Fact

_FROM = re.compile(rf"\bdown from\s({RANGE.pattern})", re.I)
_HALF = re.compile(r"\bb?fp?16\b|\bb?float16\b|\bhalf precision\b", re.I)
_CHECKPOINTING = re.compile(
    r"checkpointing\b[^.\n%]{0,60}?[-~ (|]{0,4}(\d{1,2})(?:\s?[-\u2013]\s?(\d{1,2}))?\s?%(?P<of>[^.\n|]{0,40})", re.I
)
_NOT_MEMORY = re.compile(r"slow|fast|speed|time|overhead|comput|throughput", re.I)
_BLOCKS = re.compile(r"\b(\d{1,3}) (?:\w+ )?(?:blocks|layers)\b", re.I)
_MILLIONS = re.compile(r"\b(\d+(?:\.\d+)?)\s?M (?:param|weights)", re.I)
# A transformer's block saves 34 bytes for each element of its input, which has 2 (Korthikanti et al., 2022).
_BLOCK_TO_INPUT = 17
_FEW_BLOCKS = 8
_MOST_SAID = 65
_STATE_BYTES = 16
_NEARLY_ALL = 0.15
_TOLERANCE = 0.1


def check_savings(text: str, rows: Sequence[Claim], facts: Sequence[Fact]) -> Iterator[Check]:
    """Each saving that can be judged."""
    yield from _before(text, rows)
    yield from _half_precision(text, rows)
    yield from _checkpointing(text, facts)


def _before(text: str, rows: Sequence[Claim]) -> Iterator[Check]:
    """`Forward: 5-10 GB (down from 20-25 GB)` under `Total: 30 GB (down from 50 GB)`: both sums have to add up."""
    lines = text.split("\n")
    for budget in budgets(rows):
        before = [_as_before(row, lines) for row in budget.parts]
        total = _as_before(budget.total, lines)
        if total is budget.total or all(was is row for was, row in zip(before, budget.parts, strict=True)):
            continue
        low, high = sum(row.low_bytes for row in before), sum(row.high_bytes for row in before)
        ends = ((low, total.low_bytes), (high, total.high_bytes))
        holds = all(abs(summed - said) <= _TOLERANCE * summed for summed, said in ends)
        said = f"Before, the same rows come to {low / GB:.2f} to {high / GB:.2f} GB"
        yield Check(name="before", text=f"{said}; the text says {total.printed} ({total.label}).", holds=holds)


def _as_before(row: Claim, lines: Sequence[str]) -> Claim:
    """`row` with what it is down from; itself where its line names nothing."""
    match = _FROM.search(lines[row.line - 1])
    if match is None:
        return row
    low, high, _ = next(sizes(match[1]))
    return replace(row, printed=match[1].lstrip("~"), low_bytes=round(low), high_bytes=round(high))


def _half_precision(text: str, rows: Sequence[Claim]) -> Iterator[Check]:
    """`bfloat16: 6GB saved`, which is the model's own: gradients and Adam's state are half as large too."""
    lines = text.split("\n")
    saved = next((r for r in rows if _HALF.match(r.label) and "saved" in lines[r.line - 1].lower()), None)
    budget = next((b for b in budgets(rows) if any(_is_half(row, lines) for row in b.parts)), None)
    if saved is None or budget is None:
        return
    model, others = _state(budget)
    if others and abs(saved.high_bytes - model) <= _TOLERANCE * model:
        said = "In half precision gradients and optimizer state are half as large too"
        whole = f"by the rows of {budget.total.printed} {(model + others) / GB:.3g} GB are saved beside float32"
        text_ = f"{said}: {whole}; line {saved.line} says {saved.printed}."
        yield Check(name="half-precision", text=text_, holds=False)


def _is_half(row: Claim, lines: Sequence[str]) -> bool:
    return is_parameters(row) and bool(_HALF.search(lines[row.line - 1]))


def _state(budget: Budget) -> tuple[int, int]:
    """The bytes of parameters, and of gradients and optimizer."""
    model = sum(row.high_bytes for row in budget.parts if is_parameters(row))
    others = (row for row in budget.parts if GRADIENTS.search(row.label) or OPTIMIZER.search(row.label))
    return model, sum(row.high_bytes for row in others)


def _checkpointing(text: str, facts: Sequence[Fact]) -> Iterator[Check]:
    """`checkpointing: -50 % activations`, of a transformer's many blocks, each of which keeps its input alone."""
    blocks = _blocks(text, facts)
    if blocks < _FEW_BLOCKS or "attention" not in text.lower():
        return
    least = 100 * (1 - 1 / blocks - 1 / _BLOCK_TO_INPUT)
    for match in _CHECKPOINTING.finditer(text):
        most = int(match[2] or match[1])
        if most <= _MOST_SAID and not _NOT_MEMORY.search(match["of"]) and _is_of_activations(match["of"], text):
            said = f"{blocks} blocks that are checkpointed keep their inputs, and the activations of one at a time"
            figure = f"{match[1]}-{match[2]}" if match[2] else match[1]
            line = line_of(text, match.start())
            yield Check(
                name="checkpointing-share",
                text=f"{said}: at least {least:.0f} % less of theirs; line {line} says {figure} %.",
                holds=False,
            )
            return


def _blocks(text: str, facts: Sequence[Fact]) -> int:
    """Of the model that is named, else the most that the text counts."""
    known = {fact.name: fact.value for fact in reversed(facts)}
    layers = int(known.get("model_layers", 0)) * (2 if known.get("model_encoder_decoder") else 1)
    return layers or max((int(match[1]) for match in _BLOCKS.finditer(text)), default=0)


def _is_of_activations(of: str, text: str) -> bool:
    """Whether a share of memory is one of activations: it says so, or there is next to nothing else."""
    parameters = max((float(match[1]) * 1e6 for match in _MILLIONS.finditer(text)), default=0.0)
    card = min(cards(text), default=0)
    return "activation" in of.lower() or 0 < _STATE_BYTES * parameters <= _NEARLY_ALL * card
