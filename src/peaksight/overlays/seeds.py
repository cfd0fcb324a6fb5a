"""The generators of random numbers of the host: their states, and a seed for a script that sets none."""

import random
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

# Seeds of torch's generator that no script sets, so that it is known whether one did.
_NOT_SET, _MOST_RANKS = 1 << 40, 1 << 20


def seed_generators(seed: int) -> None:
    """Let Python's generator, and numpy's and torch's where these are imported, begin at `seed`."""
    random.seed(seed)
    if numpy := sys.modules.get("numpy"):
        numpy.random.seed(seed)
    if torch := sys.modules.get("torch"):
        torch.manual_seed(seed)


def host_states() -> dict[str, Any]:
    """The states of Python's generator, and of numpy's and torch's where these are imported."""
    states: dict[str, Any] = {"python": random.getstate()}
    if numpy := sys.modules.get("numpy"):
        states["numpy"] = numpy.random.get_state()
    if torch := sys.modules.get("torch"):
        states["torch"] = torch.default_generator.get_state()
    return states


def set_host_states(states: dict[str, Any]) -> None:
    """Return to what `host_states` gave."""
    random.setstate(states["python"])
    if "numpy" in states:
        sys.modules["numpy"].random.set_state(states["numpy"])
    if "torch" in states:
        sys.modules["torch"].default_generator.set_state(states["torch"])


@contextmanager
def seeded(seed: int) -> Iterator[None]:
    """A context in which they begin at `seed`, and after which they go on where they were."""
    states = host_states()
    try:
        seed_generators(seed)
        if torch := sys.modules.get("torch"):
            torch.manual_seed(_NOT_SET + seed)
        yield
    finally:
        set_host_states(states)


def has_set_a_seed() -> bool:
    """Whether the script that runs as `seeded` has given torch's generator a seed of its own."""
    seed: int = sys.modules["torch"].default_generator.initial_seed()
    return not _NOT_SET <= seed < _NOT_SET + _MOST_RANKS
