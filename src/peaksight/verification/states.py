"""The states of all generators of random numbers of a process."""

import random
import sys
from hashlib import blake2b
from typing import Any

import torch


def random_states() -> dict[str, Any]:
    """The states of torch's, Python's and numpy's generators, so that `set_random_states` can return to them."""
    states = {"torch": torch.get_rng_state(), "python": random.getstate()}
    if torch.cuda.is_available() and torch.cuda.is_initialized():
        states["cuda"] = torch.cuda.get_rng_state_all()
    if numpy := sys.modules.get("numpy"):
        states["numpy"] = numpy.random.get_state()
    return states


def set_random_states(states: dict[str, Any]) -> None:
    """Return to what `random_states` gave."""
    torch.set_rng_state(states["torch"])
    random.setstate(states["python"])
    if "cuda" in states:
        torch.cuda.set_rng_state_all(states["cuda"])
    if "numpy" in states:
        sys.modules["numpy"].random.set_state(states["numpy"])


def digest_of(states: dict[str, Any]) -> str:
    """Equal for equal states."""
    digest = blake2b(digest_size=16)
    for name, state in sorted(states.items()):
        for part in state if isinstance(state, (list, tuple)) else [state]:
            content = part.tobytes() if hasattr(part, "tobytes") else _bytes_of(part)
            digest.update(name.encode() + content)
    return digest.hexdigest()


def _bytes_of(part: Any) -> bytes:
    return part.numpy().tobytes() if isinstance(part, torch.Tensor) else repr(part).encode()
