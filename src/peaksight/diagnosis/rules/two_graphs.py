"""# Two graphs are alive until one backward pass

## What it finds
A backward pass of a sum of two losses whose graphs have nothing in common but parameters and inputs:
what the first one saved waits while the second one is made.

## Why it costs memory
Gradients add up: `(a + b).backward()` gives the same as `a.backward()` and then `b.backward()`. In the
first case both graphs are there at the same time, in the second one after the other.

## Example
```python
loss = bce(critic(real), 1) + bce(critic(fake), 0)
loss.backward()  # the activations of two passes through the critic

bce(critic(real), 1).backward()
bce(critic(fake), 0).backward()  # of one at a time
```

## Fixes
- Two backward passes, each before the next forward; with DDP the first one under `no_sync()`. The
  same up to rounding: gradients are added in another order.

## Known misses
A loss of two outputs together, as of queries and documents or of two views of an image, needs both
graphs: that is told as refuted. Three terms and more are told by accumulated-graph. Terms that are
computed side by side are taken one after the other, in the order in which they begin.
"""

from peaksight.diagnosis.evidence import Evidence
from peaksight.diagnosis.rule import Answer, Need, Refuted, Rule
from peaksight.diagnosis.terms import MIN_MICRO_BATCHES, terms_finding
from peaksight.records import CallFact


def examine(evidence: Evidence) -> Answer:
    """Two terms with graphs apart."""
    found = terms_finding(evidence, RULE.slug, lambda count: count < MIN_MICRO_BATCHES)
    if found is not None:
        return [found]
    count = _calls_before_a_backward(evidence)
    if count > 1:
        return Refuted(f"a model is called {count} times before a backward pass, which needs these graphs together")
    return Refuted("no backward pass goes through two graphs that have nothing in common")


def _calls_before_a_backward(evidence: Evidence) -> int:
    """The most recorded calls of one model between two backward passes."""
    ticks = sorted(fact.tick for fact in evidence.capture.backwards)
    calls = [call for call in evidence.capture.passes if call.recorded]
    spans = zip([0, *ticks], ticks, strict=False)
    return max((_most_of_one(calls, first, last) for first, last in spans), default=0)


def _most_of_one(calls: list[CallFact], first: int, last: int) -> int:
    modules = [call.module for call in calls if first < call.first_tick <= last]
    return max(map(modules.count, set(modules)), default=0)


RULE = Rule("two-graphs", examine, needs=(Need.OBSERVED, Need.BACKWARD))
