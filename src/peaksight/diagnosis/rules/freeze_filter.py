"""# A freeze that freezes nothing, or little

## What it finds
A statement that makes parameters need no gradient, and to which the script comes, but
- its filter matches no parameter, so that nothing is frozen;
- another line makes the same parameters need one again;
- or what it freezes is the small part of the model, as the head instead of the backbone.

## Why it costs memory
A parameter that needs a gradient has one of its own size, and twice that as state of Adam. Whoever
believes it frozen looks for these bytes elsewhere: nothing else tells that a filter matched nothing.

## Example
```python
for name, parameter in model.named_parameters():
    if name.startswith("encoder."):  # behind a wrapper the names begin with "module.encoder."
        parameter.requires_grad = False
```

## Fixes
- Say what is frozen, and fail where it is nothing:
  `assert any(not p.requires_grad for p in model.parameters())`.
- Filter by the module (`model.encoder.requires_grad_(False)`) rather than by parts of names, and
  join several patterns with `any`: no name is in all of them.

## Known misses
What a library freezes by a configuration is looked at only where it is undone. A filter of an optimizer's
parameters freezes nothing: their gradients are made all the same. Parameters that are frozen in the
middle of the training are only counted.
"""

from collections import defaultdict
from collections.abc import Callable, Iterator

from peaksight.diagnosis.evidence import Evidence, total_bytes
from peaksight.diagnosis.rule import Answer, Need, Refuted, Rule
from peaksight.records import Basis, Category, Effect, Finding, Fix, FreezeFact, ModuleFact
from peaksight.units import format_bytes

# A freeze of less than this part of the parameters leaves their gradients and states where they are.
SMALL_SHARE = 0.05
NUM_MODULES = 2
_ASSERT = "assert any(not p.requires_grad for p in model.parameters())"


def examine(evidence: Evidence) -> Answer:
    """Every statement that freezes, against what the modules train."""
    freezes = tuple(freeze for freeze in evidence.capture.freezes if freeze.text)
    if findings := [each for freeze in evidence.capture.freezes for each in _without_effect(freeze, evidence)]:
        return findings
    if not freezes:
        return Refuted("no statement of the script makes parameters need no gradient")
    frozen, all_bytes = _frozen_bytes(evidence), _parameter_bytes(evidence)
    if _is_little(freezes, evidence):
        return [_little(freezes, evidence)]
    if not any(freeze.reached for freeze in freezes):
        return Refuted(f"the script does not come to its freeze at {freezes[0].at}")
    return Refuted(f"{format_bytes(frozen)} of {format_bytes(all_bytes)} of parameters are frozen")


def _without_effect(freeze: FreezeFact, evidence: Evidence) -> Iterator[Finding]:
    if freeze.reached and not freeze.num_parameters:
        of = freeze.condition or freeze.text
        yield _finding(f"The freeze at {freeze.at} freezes nothing: no parameter matches `{of}`", freeze, evidence)
    elif freeze.thawed_bytes and not freeze.frozen_bytes and freeze.thawed_at != freeze.at:
        undone = f"The freeze at {freeze.at} is undone at {freeze.thawed_at}, before the training begins"
        yield _finding(undone, freeze, evidence, f"{format_bytes(freeze.thawed_bytes)} of parameters train again")


def _is_little(freezes: tuple[FreezeFact, ...], evidence: Evidence) -> bool:
    """Whether they froze matrices, which norms have none of, and nearly everything trains nevertheless.

    What they froze may be a model that has not run, as an average of the weights, of which no module tells.
    """
    froze_matrices = any(freeze.frozen_matrices for freeze in freezes)
    frozen = max(_frozen_bytes(evidence), sum(freeze.frozen_bytes for freeze in freezes))
    return froze_matrices and frozen < SMALL_SHARE * _parameter_bytes(evidence)


def _little(freezes: tuple[FreezeFact, ...], evidence: Evidence) -> Finding:
    freeze = max(freezes, key=lambda each: each.frozen_bytes)
    modules = evidence.capture.modules
    return _finding(
        f"The freeze at {freeze.at} leaves nearly all to train: it freezes "
        f"{format_bytes(_frozen_bytes(evidence))} of {format_bytes(_parameter_bytes(evidence))} of parameters",
        freeze,
        evidence,
        f"Frozen: {_parts(modules, lambda fact: fact.frozen_bytes)}.",
        f"Trained: {_parts(modules, lambda fact: fact.parameter_bytes - fact.frozen_bytes)}.",
    )


def _finding(title: str, freeze: FreezeFact, evidence: Evidence, *more: str) -> Finding:
    return Finding(
        rule=RULE.slug,
        title=title,
        bytes=0,
        evidence=(*more, _in_training(evidence), _at_the_peak(evidence)),
        fixes=(Fix(kind="check-freeze", text=f"Correct the filter, and check it: {_ASSERT}", effect=Effect.MODEL),),
        basis=Basis.PATTERN,
        at=freeze.at,
        without_effect=True,
    )


def _in_training(evidence: Evidence) -> str:
    all_bytes, frozen = _parameter_bytes(evidence), _frozen_bytes(evidence)
    return f"{format_bytes(all_bytes - frozen)} of {format_bytes(all_bytes)} of parameters need a gradient"


def _at_the_peak(evidence: Evidence) -> str:
    held = {
        category: total_bytes(a for a in evidence.live if evidence.category(a) is category)
        for category in (Category.GRADIENT, Category.OPTIMIZER_STATE)
    }
    gradients, state = held.values()
    return f"At the peak gradients hold {format_bytes(gradients)} and states of the optimizer {format_bytes(state)}"


def _frozen_bytes(evidence: Evidence) -> int:
    return sum(fact.frozen_bytes for fact in evidence.capture.modules)


def _parameter_bytes(evidence: Evidence) -> int:
    return sum(fact.parameter_bytes for fact in evidence.capture.modules)


def _parts(modules: tuple[ModuleFact, ...], size_of: Callable[[ModuleFact], int]) -> str:
    """`Net.head (3.10 MiB)`: the parts of the root that have most."""
    sizes: dict[str, int] = defaultdict(int)
    for fact in modules:
        sizes[".".join(fact.module.split(".")[:2])] += size_of(fact)
    largest = sorted(sizes.items(), key=lambda item: -item[1])[:NUM_MODULES]
    return ", ".join(f"{name} ({format_bytes(size)})" for name, size in largest if size)


RULE = Rule("freeze-filter", examine, needs=(Need.OBSERVED, Need.STEPS))
