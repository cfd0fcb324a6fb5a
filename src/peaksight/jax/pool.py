"""The part of a card that JAX takes for itself when it starts."""

import os
from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from peaksight.errors import UsageError
from peaksight.gpus import Room
from peaksight.records.plan import Change

# xla/pjrt/plugin/xla_gpu/xla_gpu_allocator_config.h
DEFAULT_FRACTION = 0.75
# The kind of the change of a plan that makes the pool larger.
POOL = "jax-mem-fraction"


@dataclass(frozen=True, slots=True, kw_only=True)
class Pool:
    """A pool of `bytes`: the `fraction` of the card's total, or what others and the context leave of it.

    `preallocates` tells whether it is taken at the start.
    """

    bytes: int
    fraction: float
    preallocates: bool


def pool_on(room: Room, environment: Mapping[str, str] | None = None) -> Pool:
    """The pool on the card of `room` under the variables of `environment`, else those of this process.

    UsageError for a fraction that is none.
    """
    variables = os.environ if environment is None else environment
    fraction = _fraction(variables)
    wanted = int(room.card.total_bytes * fraction)
    preallocates = variables.get("XLA_PYTHON_CLIENT_PREALLOCATE", "true").lower() not in ("false", "0")
    return Pool(bytes=min(wanted, room.usable_bytes), fraction=fraction, preallocates=preallocates)


def _fraction(variables: Mapping[str, str]) -> float:
    text = variables.get("XLA_PYTHON_CLIENT_MEM_FRACTION") or variables.get("XLA_CLIENT_MEM_FRACTION")
    try:
        fraction = float(text) if text else DEFAULT_FRACTION
    except ValueError:
        fraction = 0.0
    if not 0 < fraction <= 1:
        raise UsageError(
            f"Can't read XLA_PYTHON_CLIENT_MEM_FRACTION={text}: it is not a part of 1. Set it to a number such as .9.",
            slug="jax-fraction",
        )
    return fraction


def environment_of(changes: Iterable[Change]) -> dict[str, str]:
    """The variables that the changes of a plan set."""
    fractions = [each.parameters["fraction"] for each in changes if each.kind == POOL]
    return {"XLA_PYTHON_CLIENT_MEM_FRACTION": f"{fractions[-1]:g}"} if fractions else {}
