"""The generators of random numbers of the host, for a script that seeds none."""

import random
import sys
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager


def seed_generators(seed: int) -> None:
    """Let Python's generator, and numpy's and torch's where these are imported, begin at `seed`."""
    random.seed(seed)
    if numpy := sys.modules.get("numpy"):
        numpy.random.seed(seed)
    if torch := sys.modules.get("torch"):
        torch.manual_seed(seed)


@contextmanager
def seeded(seed: int) -> Iterator[None]:
    """A context in which they begin at `seed`, and after which they go on where they were."""
    with ExitStack() as stack:
        stack.callback(random.setstate, random.getstate())
        if numpy := sys.modules.get("numpy"):
            stack.callback(numpy.random.set_state, numpy.random.get_state())
        if torch := sys.modules.get("torch"):
            stack.callback(torch.default_generator.set_state, torch.default_generator.get_state())
        seed_generators(seed)
        yield
