"""The states of all generators of random numbers of a process, the card's among them."""

from hashlib import blake2b
from typing import Any

import torch

from peaksight.overlays.seeds import host_states, set_host_states


def random_states() -> dict[str, Any]:
    """The states of torch's, Python's and numpy's generators, so that `set_random_states` can return to them."""
    states = host_states()
    if torch.cuda.is_available() and torch.cuda.is_initialized():
        states["cuda"] = torch.cuda.get_rng_state_all()
    return states


def set_random_states(states: dict[str, Any]) -> None:
    """Return to what `random_states` gave."""
    set_host_states(states)
    if "cuda" in states:
        torch.cuda.set_rng_state_all(states["cuda"])


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
