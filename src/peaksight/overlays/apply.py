"""Puts the changes of a plan into torch for the length of a run."""

import inspect
from collections import Counter
from collections.abc import Callable, Sequence
from functools import partial
from typing import Any

from peaksight.errors import PlanError
from peaksight.overlays import (
    accumulation,
    allocator_settings,
    autocast,
    bfloat16_weights,
    bucket_views,
    checkpointing,
    chunked_cross_entropy,
    labelled_positions,
    library_settings,
    low_precision_state,
    micro_batches,
    optimizer_implementation,
    optimizer_in_backward,
    optimizer_on_host,
    row_chunks,
    saved_on_host,
    sharding,
    source_edits,
)
from peaksight.overlays.patches import Patches
from peaksight.records.plan import Change

# Takes the patches to make it with, whom to tell each time that it changed something, and the change's parameters.
Overlay = Callable[..., None]

OVERLAYS: dict[str, Overlay] = {
    "accelerate-accumulation": accumulation.apply_to_accelerator,
    "allocator-settings": allocator_settings.apply,
    "autocast": autocast.apply,
    "bfloat16-weights": bfloat16_weights.apply,
    "bucket-views": bucket_views.apply,
    "checkpoint-modules": checkpointing.apply,
    "chunked-cross-entropy": chunked_cross_entropy.apply,
    "labelled-positions": labelled_positions.apply,
    "lightning-accumulation": accumulation.apply_to_lightning,
    "low-precision-state": low_precision_state.apply,
    "micro-batches": micro_batches.apply,
    "fused-attention": library_settings.apply_attention,
    "no-kv-cache": library_settings.apply_no_cache,
    "optimizer-implementation": optimizer_implementation.apply,
    "optimizer-in-backward": optimizer_in_backward.apply,
    "optimizer-on-host": optimizer_on_host.apply,
    "row-chunks": row_chunks.apply,
    "saved-on-host": saved_on_host.apply,
    "sharding": sharding.apply,
    "source-edit": source_edits.apply,
    "training-arguments": accumulation.apply_to_arguments,
}


class Applied:
    """What came of the changes of a plan: how often each did something."""

    def __init__(self, changes: Sequence[Change]) -> None:
        """None of `changes` has done anything yet."""
        self._changes = tuple(changes)
        self._effects: Counter[int] = Counter()

    def note(self, place: int) -> None:
        """The change at `place` did something."""
        self._effects[place] += 1

    def without_effect(self) -> tuple[str, ...]:
        """The kinds of changes that did nothing: no such module, no such call."""
        return tuple(dict.fromkeys(c.kind for place, c in enumerate(self._changes) if not self._effects[place]))


def apply_changes(changes: Sequence[Change], patches: Patches) -> Applied:
    """Make `changes`, in their order, until `patches` is left.

    Raises:
        PlanError: there is no such kind of change, or it does not take these parameters.
    """
    applied = Applied(changes)
    for place, change in enumerate(changes):
        _overlay(change)(patches, partial(applied.note, place), **change.parameters)
    return applied


def _overlay(change: Change) -> Overlay:
    overlay = OVERLAYS.get(change.kind)
    if overlay is None:
        raise PlanError(
            f"Can't apply the plan: this release knows no change of the kind {change.kind!r}. Make the plan again "
            "with `peaksight fix --apply`.",
            slug="plan-change",
        )
    return _checked(overlay, change)


def _checked(overlay: Overlay, change: Change) -> Overlay:
    """`overlay`, whose complaint about parameters that it does not know is about the plan."""

    def apply(*args: Any, **parameters: Any) -> None:
        try:
            inspect.signature(overlay).bind(*args, **parameters)
        except TypeError as error:
            raise PlanError(
                f"Can't apply the plan: {change.kind} does not take these parameters ({error}). Make the plan again "
                "with `peaksight fix --apply`.",
                slug="plan-change",
            ) from error
        overlay(*args, **parameters)

    return apply
