"""Warnings of torch that would say that a change of a plan does not do what it is meant to."""

from collections.abc import Iterable

from peaksight.records.plan import Change

# A schedule that goes on where the optimizer waits for the last part.
_SCHEDULE = "Detected call of `lr_scheduler.step()` before `optimizer.step()`"
# By the kind of the change, as in `overlays.apply.OVERLAYS`: texts that torch warns with.
_TEXTS = {
    "accelerate-accumulation": _SCHEDULE,
    "bucket-views": "Grad strides do not match bucket view strides",
    "checkpoint-modules": "None of the inputs have requires_grad=True",
    "lightning-accumulation": _SCHEDULE,
    "micro-batches": _SCHEDULE,
    "training-arguments": _SCHEDULE,
}


def absent_warnings(changes: Iterable[Change]) -> tuple[str, ...]:
    """Parts of the warnings that a run under `changes` must not show, each once."""
    return tuple(dict.fromkeys(_TEXTS[change.kind] for change in changes if change.kind in _TEXTS))
