"""Names for the tensors of a script's models: the paths of their modules, whatever wraps them."""

import gc
from collections.abc import Iterable, Iterator

import torch
from torch import Tensor, nn

from peaksight.verification.matching import plain_name
from peaksight.verification.torch_private import persistent_buffers


class Names:
    """Knows by name the parameters of all models that an optimizer trains, frozen ones too, and their buffers."""

    def __init__(self) -> None:
        """Start without any."""
        self.parameters: dict[str, Tensor] = {}
        self._names: dict[int, str] = {}
        self._roots: dict[str, nn.Module] = {}

    def add(self, parameters: Iterable[Tensor]) -> dict[str, Tensor]:
        """Name `parameters` that have no name yet and what else is in their models; return by name what is new."""
        wanted = {id(parameter): parameter for parameter in parameters if id(parameter) not in self._names}
        if not wanted:
            return {}
        before = set(self.parameters)
        for root in _roots_of(wanted):
            self._add_root(root)
        for number, parameter in enumerate(wanted.values()):
            if id(parameter) not in self._names:
                self._call(f"parameter {len(self.parameters) + number}", parameter)
        return {name: parameter for name, parameter in self.parameters.items() if name not in before}

    def of(self, parameter: Tensor) -> str:
        """The name of a parameter that was added."""
        return self._names[id(parameter)]

    def buffers(self) -> Iterator[tuple[str, Tensor]]:
        """The persistent buffers of the models, by name."""
        for prefix, root in self._roots.items():
            for path, module in root.named_modules():
                for name, buffer in persistent_buffers(module).items():
                    yield prefix + plain_name(f"{path}.{name}" if path else name), buffer

    def modules(self) -> Iterator[nn.Module]:
        """The outermost modules."""
        yield from self._roots.values()

    def _add_root(self, root: nn.Module) -> None:
        """Name what `root` holds; another model beside the first has its class in front."""
        held = [(path, each) for path, each in root.named_parameters() if id(each) not in self._names]
        if not held:
            return
        prefix = next((prefix for prefix, known in self._roots.items() if known is root), None)
        if prefix is None:
            prefix = "" if not self._roots else self._free_prefix(type(root).__name__)
        self._roots[prefix] = root
        for path, parameter in held:
            self._call(prefix + plain_name(path), parameter)

    def _free_prefix(self, name: str) -> str:
        number = sum(prefix.startswith(f"{name}.") or prefix.startswith(f"{name}#") for prefix in self._roots)
        return f"{name}." if not number else f"{name}#{number + 1}."

    def _call(self, name: str, parameter: Tensor) -> None:
        self.parameters[name] = parameter
        self._names[id(parameter)] = name


def _roots_of(wanted: dict[int, Tensor]) -> list[nn.Module]:
    """Modules that are in no other and hold some of `wanted`, the one with the most first."""
    modules = [thing for thing in gc.get_objects() if issubclass(type(thing), nn.Module)]
    inner = {id(child) for module in modules for child in vars(module).get("_modules", {}).values()}
    counts = {}
    for module in modules:
        if id(module) not in inner and "_parameters" in vars(module):
            counts[module] = sum(id(parameter) in wanted for parameter in module.parameters())
    return sorted((module for module in counts if counts[module]), key=lambda module: -counts[module])


def is_floating(tensor: Tensor) -> bool:
    """Whether `tensor` holds real numbers that a run in float64 holds as float64."""
    return tensor.is_floating_point() and tensor.dtype is not torch.float64
