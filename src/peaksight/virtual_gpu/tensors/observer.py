"""Who is told what happens on the virtual card."""

from typing import Any, Protocol

import torch


class Observer(Protocol):
    """Who is told what the virtual GPU does."""

    def after(self, func: Any, args: tuple[Any, ...], kwargs: dict[str, Any], out: Any, known: Any) -> None:
        """`func` returned `out` on the device.

        `known` is the same object whenever it is called with arguments of the same shapes, None where none is at hand.
        """

    def leaves(self, tensor: torch.Tensor) -> None:
        """The host has waited for what `tensor` holds."""

    def lacks(self, device: torch.device) -> None:
        """The script asks for another card than the first: raises what the runtime says where it is not there."""

    def made_up(self, what: str) -> None:
        """`what` is not the real run's: the slug of an approximation without its s (`value`, `chance`, `thread`)."""
