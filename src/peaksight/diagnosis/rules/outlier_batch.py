"""# One batch is much larger than the others, and makes the peak

## What it finds
Steps whose peaks differ, where the highest ones, one in five at most, are those of the largest inputs
and stand out: long samples, large graphs or many boxes that met in one batch. The input is what arrives
on the card in a step, or where nothing does, what the DataLoaders gave.

## Why it costs memory
Activations grow with the length, scores of attention with its square. A batch is padded to its
longest sample, so that a single one decides for all. The typical step needs less; the card must
hold the rarest.

## Example
```python
collate = partial(pad_sequence, batch_first=True)  # 31 samples of 200 tokens and one of 4,000: 32 x 4,000
```

## Fixes
- Cut or leave out the longest samples: changes the training, of few samples.
- Batches by tokens instead of samples, or sorted by length: other batches, the same objective.

## Known misses
Only steps that were simulated count: once their peaks agree, the run goes on to the largest batch of its
loop, if that loop is known to come there. An iterable dataset, a `while`, or batches that are alike up to
the outlier are not looked through; `--worst-batch` makes every batch of the longest samples. Where steps
are of all heights, or more than a fifth of them as high as the highest, as where samples are cut to a length
that many reach, batches vary and none is an outlier.
In a loop that skips batches which do not fit, the batches have to be a DataLoader's: else it may be a
search for a batch size.
"""

from collections import defaultdict
from statistics import median

from peaksight.diagnosis.evidence import Evidence, main_line
from peaksight.diagnosis.rule import Answer, Need, NotDecidable, Refuted, Rule
from peaksight.records import Allocation, Basis, BatchFact, Category, Effect, Finding, Fix, Phase
from peaksight.units import format_bytes

# The highest peak is this many times the typical one, and its input as many times the typical input: where all
# lengths up to a limit come alike, the longest is not yet twice the median.
LARGER = 2.0
# Outliers are at most this part of the steps, and this part of the peak above all others.
MOST = 0.2
GAP = 0.15


def examine(evidence: Evidence) -> Answer:
    """The steps of the largest inputs, beside the median of all others."""
    peaks = {step.step: step.peak_allocated_bytes for step in evidence.capture.steps if step.complete}
    sizes, arrived = _sizes(evidence), _inputs(evidence)[evidence.peak_step]
    if _is_searched_for(evidence):
        return Refuted("the step of the peak may be a trial of a search for a batch size")
    others = peaks.keys() - {evidence.peak_step}
    typical, typical_size = median(peaks[step] for step in others), median(sizes[step] for step in others)
    if _is_evaluation(evidence):
        return Refuted("the peak is in an evaluation, not in a batch that is trained on")
    if not sizes[evidence.peak_step]:
        return NotDecidable("nothing arrives on the card in the step of the peak, and no DataLoader gave a batch")
    if evidence.peak_bytes < LARGER * typical or sizes[evidence.peak_step] < LARGER * typical_size:
        told = f"the peak is {evidence.peak_bytes / max(typical, 1):.2f} times that of the median step"
        return Refuted(f"{told}, its input {sizes[evidence.peak_step] / max(typical_size, 1):.2f} times")
    heights = sorted(peaks.values(), reverse=True)
    num_above = _num_above_gap(heights)
    if (gap := _gap(heights, num_above)) < GAP * evidence.peak_bytes:
        return Refuted(f"batches vary, and none stands out: between the highest steps are {format_bytes(gap)} at most")
    return [_finding(evidence, arrived, heights[0] - heights[num_above], int(typical), num_above, len(peaks))]


def _num_above_gap(peaks: list[int]) -> int:
    """How many of `peaks`, highest first, are above the widest gap among the first fifth."""
    return max(range(1, max(1, int(MOST * len(peaks))) + 1), key=lambda count: _gap(peaks, count))


def _gap(peaks: list[int], count: int) -> int:
    return peaks[count - 1] - peaks[count]


def _finding(
    evidence: Evidence, arrived: list[Allocation], falls: int, typical: int, num_above: int, num_steps: int
) -> Finding:
    what = "One batch makes" if num_above == 1 else f"{num_above} of {num_steps} batches make"
    return Finding(
        rule=RULE.slug,
        title=f"{what} the peak: step {evidence.peak_step} needs {format_bytes(evidence.peak_bytes)}, "
        f"the median step {format_bytes(typical)}",
        bytes=falls,
        evidence=(
            f"its input is {_words(arrived)}",
            *_given(evidence, arrived),
            f"the highest of the other {num_steps - num_above} steps is {format_bytes(falls)} lower",
        ),
        fixes=(
            Fix(
                kind="bound-batches",
                text="Cut the longest samples, or bound the tokens of a batch instead of its samples.",
                effect=Effect.MODEL,
                saves_bytes=falls,
            ),
        ),
        basis=Basis.LIFETIME,
        at=main_line(arrived),
    )


def _is_searched_for(evidence: Evidence) -> bool:
    """Whether the step of the peak may be one of a search, which makes batches of sizes of its own.

    A training that goes on after batches which do not fit looks alike, but all of it does, and asks for one size.
    """
    may_be_trial = {step.step: step.may_be_trial for step in evidence.capture.steps if step.complete}
    sizes = {batch.batch_size for batch in evidence.capture.batches}
    return may_be_trial.get(evidence.peak_step, False) and (not all(may_be_trial.values()) or len(sizes) != 1)


def _is_evaluation(evidence: Evidence) -> bool:
    """Whether the peak is in a forward that autograd does not record."""
    maker = evidence.peak_maker
    is_recorded = maker is None or maker.grad_enabled or maker.phase is not Phase.FORWARD
    return evidence.peak_phase is Phase.EVALUATION or not is_recorded


def _inputs(evidence: Evidence) -> dict[int, list[Allocation]]:
    """What arrived in each step."""
    inputs: dict[int, list[Allocation]] = defaultdict(list)
    for allocation in evidence.capture.allocations:
        if evidence.category(allocation) is Category.INPUT:
            inputs[allocation.step].append(allocation)
    return inputs


def _sizes(evidence: Evidence) -> dict[int, int]:
    """The bytes of the largest tensor that arrived in each step: how many arrive is not the batch's doing."""
    sizes: dict[int, int] = defaultdict(int)
    for step, arrived in _inputs(evidence).items():
        sizes[step] = max(allocation.requested_bytes for allocation in arrived)
    if not sizes:
        for batch in evidence.capture.batches:
            sizes[batch.step] = max(sizes[batch.step], batch.bytes)
    return sizes


def _given(evidence: Evidence, inputs: list[Allocation]) -> tuple[str, ...]:
    """Which loader gave the largest of `inputs`; without any, its step decides."""
    before = [batch for batch in evidence.capture.batches if batch.tick < evidence.capture.peak_tick]
    shape = max(inputs, key=lambda allocation: allocation.requested_bytes).tensor if inputs else ""
    batch = next((batch for batch in reversed(before) if _may_be(batch, shape, evidence.peak_step)), None)
    if batch is None:
        return ()
    samples = f"{batch.batch_size} samples" if batch.batch_size else "a batch"
    return (f"the loader at {batch.at}, asked for {samples}, gave it as {batch.shapes}",)


def _may_be(batch: BatchFact, shape: str, step: int) -> bool:
    return shape in batch.shapes.split("; ") if shape else batch.step == step


def _words(inputs: list[Allocation]) -> str:
    largest = sorted(inputs, key=lambda allocation: -allocation.requested_bytes)[:3]
    return ", ".join(allocation.tensor for allocation in largest) or "unknown"


RULE = Rule("outlier-batch", examine, needs=(Need.TWO_STEPS,))
