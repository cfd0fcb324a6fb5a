"""Where a recorded run starts from: the weights, buffers and random state of the original, by name."""

from hashlib import blake2b
from pathlib import Path
from typing import Any

import torch
from torch import Tensor

from peaksight.records.training import Job
from peaksight.verification.matching import match_names
from peaksight.verification.names import Names, is_floating
from peaksight.verification.states import random_states, set_random_states

# By how much the direction of `Job.nudge` moves a parameter that is all zeros.
_SIZE_OF_ZEROS = 0.01


class Start:
    """Makes models start as `job` asks, each time an optimizer is made."""

    def __init__(self, job: Job, rank: int, names: Names) -> None:
        """Start for one rank."""
        self.own_weights: bool | None = None
        self.unmatched: tuple[str, ...] = ()
        self._job = job
        self._rank = rank
        self._names = names
        self._number = 0

    def prepare(self, parameters: dict[str, Tensor]) -> None:
        """Keep, or take over, the initial values of `parameters`, which just got their names, and all buffers."""
        buffers = dict(self._names.buffers())
        if self._job.weights:
            self._take_over(parameters, buffers)
        else:
            self._keep(parameters, buffers)
        self._number += 1
        if self._job.double:
            self.make_double([*parameters.values(), *buffers.values()])
        if self._job.nudge:
            self._nudge(parameters)

    def before_wrapping(self, module: torch.nn.Module) -> None:
        """Data parallelism lays out its buckets by dtype: `module` has to be in float64 before."""
        if self._job.double:
            self.make_double([*module.parameters(), *module.buffers()])

    @staticmethod
    def make_double(tensors: list[Tensor]) -> None:
        """Turn them to float64 in place, so that who holds them holds the new ones."""
        for tensor in tensors:
            if is_floating(tensor):
                tensor.data = tensor.data.double()

    def _file(self, directory: str, rank: int) -> Path:
        return Path(directory) / f"rank{rank}" / f"start{self._number}.pt"

    def _keep(self, parameters: dict[str, Tensor], buffers: dict[str, Tensor]) -> None:
        content = {
            "parameters": {name: tensor.detach() for name, tensor in parameters.items()},
            "buffers": {name: tensor.detach() for name, tensor in buffers.items()},
            "random": random_states(),
        }
        torch.save(content, self._file(self._job.directory, self._rank))

    def _take_over(self, parameters: dict[str, Tensor], buffers: dict[str, Tensor]) -> None:
        """Copy what differs; where something did, the random state too, for the script has drawn something else."""
        file = next((each for rank in (self._rank, 0) if (each := self._file(self._job.weights, rank)).exists()), None)
        if file is None:
            return
        kept = torch.load(file, weights_only=False)
        changed = self._copy(kept["parameters"], parameters) + self._copy(kept["buffers"], buffers)
        if changed:
            set_random_states(kept["random"])
        self.own_weights = self.own_weights is not False and not changed

    def _copy(self, kept: dict[str, Tensor], tensors: dict[str, Tensor]) -> int:
        """Copy by name, and return how many differed."""
        match = match_names(*({name: tuple(each.shape) for name, each in side.items()} for side in (kept, tensors)))
        self.unmatched += match.missing + match.added
        different = [name for name, other in match.names.items() if not _equal(tensors[name], kept[other])]
        with torch.no_grad():
            for name in different:
                tensors[name].data.copy_(kept[match.names[name]])
        return len(different)

    def _nudge(self, parameters: dict[str, Tensor]) -> None:
        with torch.no_grad():
            for name, parameter in parameters.items():
                if parameter.requires_grad:
                    parameter.data.add_(direction(name, parameter), alpha=self._job.nudge)


def direction(name: str, parameter: Tensor) -> Tensor:
    """A random direction for `parameter`, the same in every run, of the size of its values."""
    seed = int.from_bytes(blake2b(name.encode(), digest_size=4).digest(), "little")
    values = torch.randn(parameter.shape, generator=torch.Generator().manual_seed(seed), dtype=torch.float64)
    size = float(parameter.detach().double().square().mean().sqrt()) or _SIZE_OF_ZEROS
    return (values * size).to(parameter)


def _equal(tensor: Tensor, kept: Tensor) -> bool:
    return torch.equal(tensor.detach(), kept.to(tensor.device, tensor.dtype))


def slope(parameters: dict[str, Tensor], directions: dict[str, Any]) -> float:
    """The derivative of the loss along the direction of each parameter, by the gradients that they have."""
    return sum(
        float((parameter.grad.double() * directions[name].double()).sum())
        for name, parameter in parameters.items()
        if parameter.grad is not None
    )
