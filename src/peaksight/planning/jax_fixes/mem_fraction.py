"""A larger part of the card for JAX."""

import math
from collections.abc import Iterator

from peaksight.planning.kind import FixKind, Proposal
from peaksight.planning.situation import Situation
from peaksight.records.findings import Effect

# Of the card, what stays outside of the pool at least: libraries load kernels and take workspaces there.
_LEFT = 0.02
_MOST = 0.95


def _propose(situation: Situation) -> Iterator[Proposal]:
    room, pool_bytes = situation.room, situation.capture.pool_bytes
    fraction = min(_MOST, math.floor(100 * (room.usable_bytes / room.card.total_bytes - _LEFT)) / 100)
    if pool_bytes is not None and fraction * room.card.total_bytes > pool_bytes:
        yield FIX.candidate("pool", title=f"a pool of {100 * fraction:.0f} % of the card", fraction=fraction)


FIX = FixKind(
    slug="jax-mem-fraction",
    title="a larger pool",
    effect=Effect.BITWISE,
    text=(
        "JAX serves every array from a pool, which is 75 % of the card unless `XLA_PYTHON_CLIENT_MEM_FRACTION` says "
        "otherwise. What is left of the card is of no use to a process that has it alone, but for a few hundred MiB "
        "of kernels and workspaces outside of the pool. No number changes."
    ),
    propose=_propose,
)
