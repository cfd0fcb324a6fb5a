"""What a budget has no row for, though the text says that it is there."""

import re
from collections.abc import Iterator, Sequence

from peaksight.postmortem.claims.parts import GB, GRADIENTS, Budget, budgets, is_parameters
from peaksight.postmortem.claims.rows import number
from peaksight.records import Check, Claim, Fact

_ADAM = re.compile(r"\badam(?:w)?\b", re.I)
_OTHER_ADAM = re.compile(r"8.?bit|paged|fused|foreach\s?=\s?false|deepspeed|\bjax\b|\boptax\b|tensorflow", re.I)
_STEP_ROW = re.compile(r"temporar|foreach|optimi[sz]er step", re.I)
_DDP = re.compile(r"\bDDP\b|DistributedDataParallel")
_TOKENS = re.compile(
    r"(?<![\d,])(\d{2,3},\d{3}|\d{3,6}) (?:\w+ )?tokens\b|seq(?:uence)?[_ ]?len\w*\s?=\s?(?:\d+/)?(\d+)", re.I
)
_BATCH = re.compile(r"batch(?:[_ ]size)?\s?=\s?(\d{1,5})\b", re.I)


def check_omissions(text: str, rows: Sequence[Claim], facts: Sequence[Fact]) -> Iterator[Check]:
    """What the budgets of the text leave out, each with its size and in the fullest that does."""
    fullest_last = sorted(budgets(rows), key=lambda budget: budget.total.high_bytes)
    found = {kind: said for budget in fullest_last for kind, said in _left_out(text, budget, facts)}
    yield from (Check(name="left-out", text=said, holds=True) for said in found.values())


def _left_out(text: str, budget: Budget, facts: Sequence[Fact]) -> Iterator[tuple[str, str]]:
    for number_of, kind in enumerate((_of_adam(text, budget), _of_ddp(text, budget), _logits(budget, facts))):
        for what, num_bytes in kind:
            total = f"{budget.total.printed} ({budget.total.label})"
            yield str(number_of), f"{what}, {num_bytes / GB:.3g} GB: no row of {total} has it."


def _of_adam(text: str, budget: Budget) -> Iterator[tuple[str, float]]:
    """The list of square roots that torch's default (foreach) step makes."""
    trained = _trained(budget)
    has_adam = any(_ADAM.search(row.label) for row in budget.parts) and not _OTHER_ADAM.search(text)
    if trained and has_adam and not any(_STEP_ROW.search(row.label) for row in budget.parts):
        yield "torch's default AdamW (not fused) makes a temporary as large as what it trains", trained


def _trained(budget: Budget) -> float:
    rows = [row for row in budget.parts if is_parameters(row) and "frozen" not in row.label.lower()]
    trainable = [row for row in budget.parts if "trainable" in row.label.lower()]
    return sum(row.high_bytes for row in trainable or rows)


def _of_ddp(text: str, budget: Budget) -> Iterator[tuple[str, float]]:
    gradients = sum(row.high_bytes for row in budget.parts if GRADIENTS.search(row.label))
    if gradients and _DDP.search(text) and not any("bucket" in row.label.lower() for row in budget.parts):
        yield "DDP's buckets are as large as the gradients", gradients


def _logits(budget: Budget, facts: Sequence[Fact]) -> Iterator[tuple[str, float]]:
    """batch x tokens x vocabulary of the model that is named, in half precision."""
    vocabulary = max((fact.value for fact in facts if fact.name in ("model_vocab", "vocab")), default=0)
    label = " ".join(row.label for row in budget.parts)
    batch = _BATCH.search(label)
    tokens = max((int(number(m[1] or m[2])) for m in _TOKENS.finditer(label)), default=0)
    if vocabulary and batch and tokens and not re.search(r"logit|cross.?entropy|loss", label, re.I):
        elements = int(batch[1]) * tokens * vocabulary
        yield f"logits of batch {batch[1]} x {tokens} tokens x {vocabulary:,} words, in half precision", 2 * elements
