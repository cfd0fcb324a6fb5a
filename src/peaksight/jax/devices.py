"""What a script asks JAX about the devices, answered as with the card."""

from collections.abc import Callable
from functools import wraps
from typing import Any

import jax

from peaksight.gpus import Card
from peaksight.overlays.patches import Patches

_PLATFORMS = ("gpu", "cuda")
_COUNTED = ("devices", "local_devices", "device_count", "local_device_count")


def answer_as(patches: Patches, card: Card, memory_stats: Callable[[], dict[str, int]]) -> None:
    """Let JAX's devices be of `card`, by name and by `memory_stats`; those of "gpu" or "cuda" are found."""
    device = type(jax.devices()[0])
    kind = vars(device)["device_kind"]
    patches.set(
        device, "device_kind", property(lambda self: card.product_name if _is_ours(self) else kind.__get__(self))
    )
    patches.set(device, "memory_stats", lambda self: memory_stats())
    patches.set(jax, "default_backend", lambda: "gpu")
    for name in _COUNTED:
        patches.set(jax, name, _of_any_platform(getattr(jax, name)))


def _is_ours(device: Any) -> bool:
    """Whether it stands for a card in this process, and is no device of XLA's compiler."""
    return bool(device.platform == "cpu")


def _of_any_platform(function: Callable[..., Any]) -> Callable[..., Any]:
    @wraps(function)
    def called(*args: Any, **kwargs: Any) -> Any:
        given = [None if each in _PLATFORMS else each for each in args]
        named = {key: None if each in _PLATFORMS else each for key, each in kwargs.items()}
        return function(*given, **named)

    return called
