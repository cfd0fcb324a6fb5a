"""# Activations of one batch are most of the peak

## What it finds
What the forward saves for the backward of the same step holds most of the peak, beside what a more
specific rule names: scores of attention (materialised-attention), logits (logits-unsupervised),
what earlier steps left (graph-kept, accumulated-graph). It is the plain cause: the batch, the
length or the resolution is too large for the card. Where it is little, but most of the peak together
with temporaries such as gradients of activations, that is told. Where the peak is in a forward without
autograd, it is what this one computes with at a time.

## Why it costs memory
The backward of an operator needs its inputs or outputs, so that every layer keeps some tensors of the
size batch x length x width until the backward comes to it. They grow with each of the three, and
all of them are there at once when the backward begins.

## Example
```python
loss = model(batch).loss  # 12 layers x some 16 tensors of float32[8, 1024, 768] each
loss.backward()  # frees them one by one
```

## Fixes
- Checkpoint each block (`torch.utils.checkpoint`, `model.gradient_checkpointing_enable()`): only
  its input stays, and it is computed again in the backward. Bitwise the same, about a third slower.
- A smaller batch with gradient accumulation: up to rounding the same where the loss is a mean over
  equally many elements and no layer looks across the batch (BatchNorm does).
- Autocast to bfloat16: half of what is saved in float32.
- An evaluation on smaller batches: the same up to rounding.
- Shorter sequences or a lower resolution change the training.

## Known misses
Blocks are told by numbered module paths (`layers.3`): a model without them gets no estimate for
checkpointing. It takes the output of each block as what stays, and one block as what is recomputed.
"""

from collections import Counter
from collections.abc import Iterable

from peaksight.diagnosis.attention import attention_calls, blocks_of
from peaksight.diagnosis.evidence import Evidence, largest_lines, main_line, total_bytes
from peaksight.diagnosis.input_dependent import depending_on_input, depends_on_input, saved_in_own_step
from peaksight.diagnosis.module_blocks import blocks_of_modules
from peaksight.diagnosis.rule import Answer, Need, Refuted, Rule, is_notable
from peaksight.records import Allocation, Basis, Effect, Finding, Fix, Phase
from peaksight.units import format_bytes

# From here on they are what the peak is about.
DOMINATING_SHARE = 0.3
# With temporaries, as gradients of activations, they have to be that much to say something.
DOMINATING_TOGETHER = 0.5
_SMALLER = Fix(
    kind="smaller-batch",
    text="A smaller batch with gradient accumulation.",
    effect=Effect.ROUNDING,
    saves_bytes=None,
)


def examine(evidence: Evidence) -> Answer:
    """What the step of the peak saved for its own backward, less what specific rules name."""
    named = blocks_of(evidence, tuple(attention_calls(evidence)))
    saved = [a for a in evidence.capture.allocations if a not in named and saved_in_own_step(evidence, a)]
    of_run = frozenset(saved)
    held = [a for a in evidence.live if a.step == evidence.peak_step and a in of_run]
    if (passing := _passing(evidence)) and total_bytes(passing[1]) > total_bytes(held):
        return _of_passing(evidence, *passing)
    if total_bytes(held) < DOMINATING_SHARE * evidence.peak_bytes:
        made = [a for a in depending_on_input(evidence) if a not in named]
        alive = [a for a in evidence.live_of(made) if a.step == evidence.peak_step]
        if total_bytes(alive) >= DOMINATING_TOGETHER * evidence.peak_bytes and not _is_of_one_shape(alive):
            return [_of_batch(evidence, "Activations and temporaries of one batch", made, alive, _SMALLER)]
        return Refuted(f"activations of one step, beside what other rules name, hold {_share(evidence, held)}")
    return [
        Finding(
            rule=RULE.slug,
            title=f"Activations of one batch hold {_share(evidence, held)}",
            bytes=evidence.saved_without(saved),
            evidence=(*largest_lines(held), *_by_block(held)),
            fixes=_fixes(evidence, saved, held),
            basis=Basis.LIFETIME,
            at=main_line(held),
        )
    ]


def _is_of_one_shape(held: list[Allocation]) -> bool:
    """Whether most of it is a few tensors of one shape, which one-large-tensor tells."""
    sizes: Counter[str] = Counter()
    for allocation in held:
        sizes[allocation.tensor] += allocation.allocated_bytes
    return max(sizes.values(), default=0) > total_bytes(held) / 2


def _passing(evidence: Evidence) -> tuple[list[Allocation], list[Allocation]] | None:
    """Where the peak is in a forward without autograd: what such forwards of the run make, and what of it is alive."""
    maker = evidence.peak_maker
    if maker is None or maker.grad_enabled or maker.phase not in (Phase.FORWARD, Phase.EVALUATION):
        return None
    if any(call.first_tick < maker.born <= call.last_tick for call in evidence.capture.checkpoints):
        return None
    made = [a for a in evidence.capture.allocations if not a.grad_enabled and depends_on_input(evidence, a)]
    of_run = frozenset(made)
    return made, [a for a in evidence.live if a in of_run and a.step == evidence.peak_step]


def _of_passing(evidence: Evidence, made: list[Allocation], held: list[Allocation]) -> Answer:
    """A batch of a forward without autograd, which keeps a few layers at a time.

    It is an evaluation where the model is in its mode; else a teacher, what follows a model's forward, or the forward
    of a custom `autograd.Function`.
    """
    is_evaluation = evidence.peak_maker is not None and evidence.peak_maker.phase is Phase.EVALUATION
    where = "an evaluation" if is_evaluation else "a forward without autograd"
    if total_bytes(held) < DOMINATING_SHARE * evidence.peak_bytes:
        return Refuted(f"one batch of {where} holds {_share(evidence, held)}")
    smaller = Fix(
        kind="smaller-evaluation-batch",
        text=f"A smaller batch in {'the evaluation' if is_evaluation else 'that forward'}, half as large here.",
        effect=Effect.ROUNDING,
        saves_bytes=evidence.saved_without(made) // 2,
    )
    return [_of_batch(evidence, f"Activations of one batch of {where}", made, held, smaller)]


def _of_batch(evidence: Evidence, what: str, made: list[Allocation], held: list[Allocation], fix: Fix) -> Finding:
    """`made` in the whole run, of which `held` are alive at the peak."""
    return Finding(
        rule=RULE.slug,
        title=f"{what} hold {_share(evidence, held)}",
        bytes=evidence.saved_without(made),
        evidence=largest_lines(held),
        fixes=(fix,),
        basis=Basis.LIFETIME,
        at=main_line(held),
    )


def _share(evidence: Evidence, held: Iterable[Allocation]) -> str:
    return evidence.share(total_bytes(held))


def _by_block(held: Iterable[Allocation]) -> tuple[str, ...]:
    blocks = blocks_of_modules(held)
    if not blocks:
        return ()
    largest = max(blocks, key=lambda name: total_bytes(blocks[name]))
    in_all = format_bytes(sum(map(total_bytes, blocks.values())))
    return (
        f"{in_all} are in {len(blocks)} blocks, the largest is {largest}: {format_bytes(total_bytes(blocks[largest]))}",
    )


def _fixes(evidence: Evidence, saved: list[Allocation], held: list[Allocation]) -> tuple[Fix, ...]:
    blocks = blocks_of_modules(held)
    saved_bytes = evidence.saved_without(_recomputed(saved)) if blocks else 0
    if not is_notable(evidence, saved_bytes):
        return (_SMALLER,)
    checkpointing = Fix(
        kind="activation-checkpointing",
        text=f"Checkpoint each of the {len(blocks)} blocks such as {min(blocks)}.",
        effect=Effect.BITWISE,
        saves_bytes=saved_bytes,
    )
    return checkpointing, _SMALLER


def _recomputed(saved: list[Allocation]) -> set[Allocation]:
    """What checkpointing of blocks would not keep: all but their outputs, and but the largest block of each step."""
    gone: set[Allocation] = set()
    for step in {allocation.step for allocation in saved}:
        blocks = blocks_of_modules(allocation for allocation in saved if allocation.step == step)
        largest = max(blocks, key=lambda name: total_bytes(blocks[name]), default="")
        for name, members in blocks.items():
            gone |= set(members if name != largest else ()) - {max(members, key=lambda a: a.born)}
    return gone


RULE = Rule("activations", examine, needs=(Need.BACKWARD,), is_general=True)
