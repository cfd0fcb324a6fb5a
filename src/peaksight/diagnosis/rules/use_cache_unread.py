"""# A setting of a configuration that nobody reads

## What it finds
A line that sets `use_cache`, `output_hidden_states` or `output_attentions` on the configuration of a
model, while the module that decides reads another object, with another value.

## Why it costs memory
What the setting was to avoid is made and returned all the same. With `use_cache` that is the cache of
keys and values: of a training step it costs little while the graph is there, which saves them anyway,
and all of it from the end of the backward pass for as long as the output is kept.

## Example
```python
model = T5ForConditionalGeneration.from_pretrained("google/flan-t5-xl")
model.config.use_cache = False  # the decoder has had a copy of its own since transformers 5
```

## Fixes
- Pass it in the call: `model(..., use_cache=False)`: bitwise the same.
- Set it before the model is made (`config.use_cache = False`), or on the part that reads it
  (`model.decoder.config.use_cache = False`).

## Known misses
Settings of configurations other than those of transformers, and those that are read when the model is
made, such as a dropout.
"""

from collections.abc import Iterator

from peaksight.diagnosis.evidence import Evidence, total_bytes
from peaksight.diagnosis.rule import Answer, Need, Refuted, Rule
from peaksight.records import Allocation, Basis, Effect, Finding, Fix, SettingFact

# The names under which outputs of transformers hold what a setting has them return.
_RETURNED = {
    "use_cache": "past_key_values",
    "output_hidden_states": "hidden_states",
    "output_attentions": "attentions",
}


def examine(evidence: Evidence) -> Answer:
    """The settings of configurations that modules read elsewhere, with another value."""
    settings = [setting for setting in evidence.capture.settings if setting.kind in _RETURNED]
    if not settings:
        return Refuted("no line sets use_cache, output_hidden_states or output_attentions of a configuration")
    if unread := [setting for setting in settings if setting.detail and not setting.num_reached]:
        return [_finding(setting, evidence) for setting in unread]
    setting = settings[-1]
    read = "is what modules read" if setting.num_reached else "is read by no module, nor is another value of it"
    return Refuted(f"{setting.kind} = {setting.value} of {setting.at} {read}")


def _finding(setting: SettingFact, evidence: Evidence) -> Finding:
    return Finding(
        rule=RULE.slug,
        title=f"{setting.kind} = {setting.value} at {setting.at} reaches nobody that acts on it",
        bytes=0,
        evidence=(f"{setting.detail}.", *_returned(setting, evidence)),
        fixes=(
            Fix(
                kind="pass-setting",
                text=f"Pass it in the call: model(..., {setting.kind}={setting.value}).",
                effect=Effect.BITWISE,
            ),
        ),
        basis=Basis.PATTERN,
        at=setting.at,
        without_effect=True,
    )


def _returned(setting: SettingFact, evidence: Evidence) -> Iterator[str]:
    """What is held at the peak under the name by which an output has it, and how much of that only this name holds."""
    name = _RETURNED[setting.kind]
    named = {hold.born for hold in evidence.capture.holds if name in hold.name and not hold.by_graph}
    held = [allocation for allocation in evidence.live if allocation.born in named]
    if not held:
        yield f"No block that `{name}` of an output holds is alive at the peak: it is not what the peak is made of."
        return
    alone = [allocation for allocation in held if not _is_saved(allocation, evidence)]
    yield (
        f"`{name}` of an output holds {evidence.share(total_bytes(held))} at the peak, of which the graph needs all "
        f"but {evidence.share(total_bytes(alone))}."
    )


def _is_saved(allocation: Allocation, evidence: Evidence) -> bool:
    """Whether a backward pass that is still to come, or runs, needs it."""
    return allocation.step == evidence.peak_step and bool(allocation.saved_by)


RULE = Rule("use-cache-unread", examine, needs=(Need.OBSERVED, Need.STEPS))
