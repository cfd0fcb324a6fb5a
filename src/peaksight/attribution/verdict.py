"""Does it fit: the run on the limited card, and how sure that is."""

import sys
from dataclasses import dataclass

from peaksight.allocator.device import KEPT_BY_DRIVER
from peaksight.attribution.failing import out_of_memory
from peaksight.attribution.replayed import ReplayedFailure, replay_capture
from peaksight.gpus import Room
from peaksight.records import WITHOUT_ANSWER, Action, Approximation, Capture, OutOfMemory, Retries
from peaksight.units import GIB, MIB

UNBOUNDED_BYTES = sys.maxsize
# Approximations without a size that may still decide the verdict, and the most each is taken to hold.
DECIDING_BYTES = {
    "convolution-workspace": GIB // 2,
    "linalg-workspace": GIB,
    "index-workspace": GIB,
    "fft-workspace": GIB,
    "recurrent-layers": GIB,
    "other-process": UNBOUNDED_BYTES,
    "communicator": 840 * MIB,
}


@dataclass(frozen=True, slots=True, kw_only=True)
class Verdict:
    """`fits` is None when an unknown could turn the answer around; `oom` then still says which way is likelier.

    `undecided` are the slugs of what keeps a run that fits from being sure, none where that is the card itself, which
    is known too roughly. `retries` is None when the card was never full.
    """

    fits: bool | None
    oom: OutOfMemory | None
    retries: Retries | None
    undecided: tuple[str, ...] = ()


def judge(capture: Capture, room: Room, unlimited: Capture | None = None) -> Verdict:
    """Decide whether the run of `capture` on the card of `room` fits.

    `unlimited` is the same run without a limit, where one was made because a failure ended the first. A run that fits
    does so surely when it also would in the smallest room that the unknowns leave, and one that fails does when it
    also would in the largest. Where it failed on another card, whether it fits this one is read from `unlimited`.
    """
    if capture.fatal is not None:
        sure = unlimited is None or not _fits(unlimited, room.possibly_usable_bytes)
        return Verdict(
            fits=False if sure else None, oom=out_of_memory(capture, capture.failures[capture.fatal]), retries=None
        )
    if capture.pool_bytes is not None:
        return _judge_pool(capture, capture.pool_bytes)
    if unlimited is not None and not _fits(unlimited, room.possibly_usable_bytes):
        return Verdict(fits=False, oom=None, retries=None)
    whole = unlimited or capture
    unknown = _unknown_bytes(whole)
    smallest = max(0, room.surely_usable_bytes - sum(unknown.values()))
    sure = whole.finished not in WITHOUT_ANSWER and _fits(whole, smallest)
    undecided = () if sure else tuple(unknown)
    return Verdict(fits=True if sure else None, oom=None, retries=_retries(capture, room), undecided=undecided)


def _judge_pool(capture: Capture, pool_bytes: int) -> Verdict:
    """The verdict on a run whose every allocation the pool of JAX could serve."""
    unknown = _unknown_bytes(capture)
    is_sure = (
        capture.finished not in WITHOUT_ANSWER and capture.peak_allocated_bytes + sum(unknown.values()) <= pool_bytes
    )
    return Verdict(fits=True if is_sure else None, oom=None, retries=None, undecided=() if is_sure else tuple(unknown))


def allowed_by_script(capture: Capture) -> int | None:
    """What the script let PyTorch reserve at last, None if that was everything."""
    allowed = [call.bytes for call in capture.calls if call.action is Action.ALLOWED]
    return allowed[-1] or None if allowed else None


def first_failure(capture: Capture, allowed_bytes: int) -> ReplayedFailure | None:
    """What fails first of an unlimited `capture` when PyTorch may reserve `allowed_bytes`, None if nothing does."""
    if capture.peak_reserved_bytes <= allowed_bytes:
        return None
    return replay_capture(capture, limit_bytes=None, allowed_bytes=allowed_bytes).failure


def _fits(capture: Capture, limit_bytes: int) -> bool:
    """Whether `capture` runs to its end in `limit_bytes`: seen at once where it is, else by a replay."""
    return _goes_as_it_went(capture, limit_bytes) or replay_capture(capture, limit_bytes=limit_bytes).failure is None


def _goes_as_it_went(capture: Capture, limit_bytes: int) -> bool:
    """Whether the card was never full, and is not in `limit_bytes` either: each call has the same effect again."""
    was_full = (
        capture.failures
        or any(step.num_alloc_retries for step in capture.steps)
        or any(call.action in (Action.FAILED, Action.DONE_WITHOUT) for call in capture.calls)
    )
    return not was_full and capture.peak_reserved_bytes + capture.outside_bytes + KEPT_BY_DRIVER <= limit_bytes


def _unknown_bytes(capture: Capture) -> dict[str, int]:
    """By how much more each unknown may take, by slug."""
    return {unknown.slug: most for unknown in capture.not_simulated if (most := _most_bytes(unknown))}


def _most_bytes(unknown: Approximation) -> int:
    if unknown.at_most_bytes is not None:
        return unknown.at_most_bytes
    return DECIDING_BYTES.get(unknown.slug, 0) if unknown.bytes is None else 0


def _retries(capture: Capture, room: Room) -> Retries | None:
    """How often the card was full, and how much more memory would have ended that."""
    steps = [step for step in capture.steps if step.num_alloc_retries]
    if not steps:
        return None
    return Retries(
        count=sum(step.num_alloc_retries for step in steps),
        steps=tuple(step.step for step in steps),
        head_room_bytes=_head_room_bytes(capture, room),
    )


def _head_room_bytes(capture: Capture, room: Room) -> int:
    """What the run would have needed without a limit, less what the card gives, or the script itself allows."""
    needs = replay_capture(capture, limit_bytes=None, allowed_bytes=UNBOUNDED_BYTES)
    beyond_card = needs.needed_bytes + KEPT_BY_DRIVER - room.usable_bytes
    allowed_bytes = allowed_by_script(capture)
    return beyond_card if allowed_bytes is None else max(beyond_card, needs.peak_reserved_bytes - allowed_bytes)
