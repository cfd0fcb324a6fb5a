"""Virtual GPUs for the tests, and what they were asked for."""

from contextlib import contextmanager
from dataclasses import replace

import torch

from peaksight.gpus import find_card, room_on
from peaksight.virtual_gpu.card import VirtualGpu
from peaksight.virtual_gpu.device_rules import rules_for

MANY_STEPS = 1000
RELEASE = tuple(int(part) for part in torch.__version__.split(".")[:2])


def card_of(name, *, build="2.11+cu130", max_steps=MANY_STEPS, **options):
    """The card called `name` with the rules of `build`, which does not stop the test at the steady state."""
    card = find_card(name)
    return VirtualGpu(room_on(card), rules_for(build, card), max_steps=max_steps, **options)


def card_with(usable_bytes, *, max_steps=MANY_STEPS, **options):
    """An H100 that gives a process `usable_bytes` beside its context."""
    card = find_card("h100-80gb")
    room = room_on(replace(card, total_bytes=usable_bytes + card.context_bytes))
    return VirtualGpu(room, rules_for("2.11+cu130", card), max_steps=max_steps, **options)


def h100(**options):
    """An H100."""
    return card_of("h100-80gb", **options)


@contextmanager
def births_on(gpu):
    """The list of the blocks taken inside the `with`, of the first card of `gpu` or of a ledger."""
    births, ledger = [], getattr(gpu, "ledger", gpu)
    num_before = len(ledger.births)
    yield births
    births.extend(ledger.births[num_before:])


def requested(births):
    """The bytes asked for each of `births`."""
    return [birth.requested_bytes for birth in births]


def by_role(gpu, role):
    """The bytes asked for the blocks of `role` that are alive, on the first card of `gpu` or in a ledger."""
    births = getattr(gpu, "ledger", gpu).births
    return sum(birth.requested_bytes for birth in births if birth.role is role and birth.died is None)


def peak_of(gpu, run):
    """By how many bytes `run()` lifts the allocated bytes at its highest, over what was there before."""
    before = gpu.ledger.allocator.allocated_bytes
    torch.cuda.reset_peak_memory_stats()
    run()
    return torch.cuda.max_memory_allocated() - before


def slugs(gpu):
    """What the run approximated."""
    return [approximation.slug for approximation in gpu.approximations.records()]


@contextmanager
def events_on(gpu):
    """The bytes taken (positive) and given back (negative) inside the `with`, in order: of a `gpu`, or of a ledger."""
    events = []
    ledger = getattr(gpu, "ledger", gpu)
    first = ledger._tick
    yield events
    taken = [(birth.born, birth.requested_bytes) for birth in ledger.births]
    freed = [(birth.died, -birth.requested_bytes) for birth in ledger.births if birth.died is not None]
    events.extend(num_bytes for tick, num_bytes in sorted(taken + freed) if tick > first)


def anonymous_bytes():
    """Host memory of this process that no file backs; mapped files are in memory as long as nobody needs the room."""
    with open("/proc/self/statm") as file:
        resident, shared = file.read().split()[1:3]
    return (int(resident) - int(shared)) * 4096
