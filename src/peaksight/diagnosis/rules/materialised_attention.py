"""# Attention scores are written out where a fused kernel would do

## What it finds
A batched product, a softmax over its last dimension and a second batched product: attention in
steps, with a score for every pair of positions and head. A softmax over classes, or a matrix of
pairs without a softmax, is not one.

## Why it costs memory
Scores and probabilities have batch x heads x length x length elements, four times as many for twice
the length. The backward needs the probabilities, after dropout again and its mask of one byte an
element, so that all of them stay for every layer; casts to float32 add another copy. A fused kernel
computes them in tiles, keeps one number a row, and computes them again in the backward.

## Example
```python
weights = (q @ k.transpose(-2, -1) / math.sqrt(d)).softmax(dim=-1)
y = dropout(weights) @ v  # float32[8, 12, 1024, 1024] is 384 MiB, kept up to three times a layer

y = F.scaled_dot_product_attention(q, k, v, dropout_p=p)  # none of them
```

## Fixes
- `torch.nn.functional.scaled_dot_product_attention`; transformers: `attn_implementation="sdpa"`.
  The same up to rounding; with dropout other draws. Its flash kernel takes no mask, its
  memory-efficient one takes masks and biases. If it is called already, both are off or refuse the
  inputs, and its math kernel ran.
- Where the probabilities themselves are needed, compute those of the one layer that needs them. In a
  simulated run the evidence says, for each way through the script, whether anything but the product with
  the values reads them: computes something of them and of other tensors, takes them to the host, or
  starts a backward pass at them. Where nothing does, that stream can be fused though others cannot.

## Known misses
Attention as products of two plain matrices without a batch, and kernels that are not PyTorch's.
What a fused kernel keeps instead, one float32 a row, is left out of the estimate. Weights that are
kept for what follows the training loop count as unread.
"""

from collections.abc import Iterator

from peaksight.diagnosis.attention import DROPOUT, AttentionCall, attention_calls, blocks_of
from peaksight.diagnosis.attention_readers import Stream, fix_text, in_words, streams, unread_blocks
from peaksight.diagnosis.evidence import Evidence, largest_lines, main_line, total_bytes
from peaksight.diagnosis.rule import NATURAL_SHARE, Answer, Refuted, Rule, is_notable
from peaksight.records import Allocation, Basis, Effect, Finding, Fix
from peaksight.units import format_bytes

_FUSED = "fused-attention"
_FUNCTION = "scaled_dot_product_attention"
_WHAT_TO_CALL = "torch.nn.functional.scaled_dot_product_attention (transformers: attn_implementation='sdpa')."
_WHAT_THEY_TAKE = (
    "What a fused kernel takes: float16 in place of bfloat16 below compute capability 8.0, a mask without a gradient "
    "whose last dimension is contiguous, as many heads of keys as of queries (or enable_gqa), a smaller head; and no "
    "kernel that is switched off."
)


def examine(evidence: Evidence) -> Answer:
    """Scores, probabilities and dropout masks of all calls, with their gradients."""
    calls = tuple(attention_calls(evidence))
    if not calls:
        return Refuted("no softmax stands between two batched products")
    blocks = blocks_of(evidence, calls)
    saved = evidence.saved_without(blocks)
    if not is_notable(evidence, saved):
        return Refuted(f"without the scores of attention the peak falls by {format_bytes(saved)} only")
    held = [allocation for allocation in evidence.live if allocation in blocks]
    if all(call.is_sdpa for call in calls):
        asked = calls[0].probabilities
        told = f"{_FUNCTION} at {asked.source} runs as its math kernel on this card"
        shown = (told, *largest_lines(held), *_parts(held, calls))
        fix = Fix(kind=_FUSED, text=_WHAT_THEY_TAKE, effect=Effect.NOISE, saves_bytes=saved)
        return [_finding(held, saved, ", for no fused kernel takes the call", shown, (fix,))]
    found = streams(evidence, calls)
    fix = Fix(kind=_FUSED, text=_WHAT_TO_CALL, effect=_effect(blocks), saves_bytes=saved)
    shown = (*largest_lines(held), *_parts(held, calls), *in_words(found))
    return [_finding(held, saved, "", shown, (fix, *_where_unread(evidence, calls, found)))]


def _finding(
    held: list[Allocation], saved: int, why: str, evidence: tuple[str, ...], fixes: tuple[Fix, ...]
) -> Finding:
    return Finding(
        rule=RULE.slug,
        title=f"Attention scores are written out: {format_bytes(total_bytes(held))} of them at the peak{why}",
        bytes=saved,
        evidence=evidence,
        fixes=fixes,
        basis=Basis.PATTERN,
        at=main_line(held),
    )


def _where_unread(evidence: Evidence, calls: tuple[AttentionCall, ...], found: tuple[Stream, ...]) -> Iterator[Fix]:
    """The fix for some of several streams: the weights of the others are read."""
    blocks = unread_blocks(evidence, calls, found)
    if blocks and any(stream.read_share for stream in found):
        saved = evidence.saved_without(blocks)
        yield Fix(
            kind=_FUSED,
            text=fix_text(found, saved),
            effect=_effect(blocks),
            saves_bytes=saved,
        )


def _effect(blocks: set[Allocation]) -> Effect:
    """A fused kernel draws other dropout masks."""
    return Effect.NOISE if any(allocation.op in DROPOUT for allocation in blocks) else Effect.ROUNDING


def _parts(held: list[Allocation], calls: tuple[AttentionCall, ...]) -> tuple[str, ...]:
    """What the blocks are: one tensor of probabilities, and how much is for dropout."""
    largest = max((call.probabilities for call in calls), key=lambda a: a.allocated_bytes)
    dropout = total_bytes(allocation for allocation in held if allocation.op in DROPOUT)
    kept = {allocation.born for allocation in held}
    count = sum(any(block.born in kept for block in call.scores) for call in calls)
    told = f"{count} calls are kept at the peak; the probabilities of one are {largest.tensor}"
    return (f"{told}, {format_bytes(dropout)} are dropout's copies and masks",) if dropout else (told,)


RULE = Rule("materialised-attention", examine, large_share=NATURAL_SHARE, refines=("one-large-tensor",))
