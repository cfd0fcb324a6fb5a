"""The card as a bar: what each part of its memory is for at the peak."""

from dataclasses import dataclass


@dataclass(frozen=True, slots=True, kw_only=True)
class BudgetPart:
    """`part` is a category, or `unallocated`, `context`, `libraries`, `other_processes`, `withheld` or `free`."""

    part: str
    bytes: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Budget:
    """What the memory of one card is for: the `parts` add up to `total_bytes` and `over_bytes`.

    First come the categories at the allocated peak, then what the allocator has reserved at its peak beyond that
    (`unallocated`: under JAX the rest of the pool, where that is taken at the start), the CUDA context, memory that
    libraries take outside the allocator, and other processes. `withheld` is what the allocator may not take of the
    card: the script caps it by a memory fraction, or JAX leaves it out of its pool. Then one of two: what is `free`, or
    by how much all of it is more than the card has, `over_bytes`. Parts without a byte are left out.
    """

    total_bytes: int
    parts: tuple[BudgetPart, ...]
    over_bytes: int
