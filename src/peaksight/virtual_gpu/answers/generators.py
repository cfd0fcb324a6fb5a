"""Random generators of the card: they draw nothing, and a real generator of the host keeps their seed."""

from typing import Any

import torch

from peaksight.virtual_gpu.tensors.devices import for_cpp, for_python


class _GeneratorType(type(torch._C.Generator)):  # type: ignore[misc]
    """Generators made before the card was put in are generators too."""

    def __instancecheck__(cls, instance: Any) -> bool:
        return isinstance(instance, torch._C.Generator)


class Generator(torch._C.Generator, metaclass=_GeneratorType):
    """Stands in for torch.Generator."""

    _device: torch.device

    def __new__(cls, device: Any = "cpu") -> "Generator":
        """A generator of `device`."""
        generator: Generator = super().__new__(cls, "cpu")  # type: ignore[call-arg]
        generator._device = for_python(for_cpp(torch.device(device)))
        return generator

    @property
    def device(self) -> torch.device:  # type: ignore[override]
        """Where it says it is."""
        return self._device
