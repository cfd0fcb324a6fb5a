"""What samples a model was called with, however they were split into micro-batches."""

from collections import Counter
from collections.abc import Iterator, Mapping
from dataclasses import fields, is_dataclass
from hashlib import blake2b
from typing import Any

import torch
from torch import Tensor

from peaksight.records.training import DIGESTS, Column


class Batches:
    """The samples of one optimizer step, by argument of the model."""

    def __init__(self) -> None:
        """Start without any."""
        self.samples = 0
        self._counts: Counter[str] = Counter()
        self._sums: Counter[str] = Counter()

    def add(self, args: tuple[Any, ...], kwargs: dict[str, Any]) -> None:
        """Take the rows of the tensors in a call of the model that hold data, not results of a model."""
        tensors = {name: each for name, each in _tensors({**dict(enumerate(args)), **kwargs}) if each.dim()}
        if not tensors:
            return
        samples = next(iter(tensors.values())).shape[0]
        self.samples += samples
        for name, tensor in tensors.items():
            if tensor.shape[0] == samples and not tensor.requires_grad:
                self._counts[name] += samples
                self._sums[name] += sum(_digest(row) for row in tensor.detach().cpu())

    def columns(self) -> tuple[Column, ...]:
        """The samples as digests."""
        return tuple(
            Column(name=name, samples=self._counts[name], digest=f"{total % DIGESTS:032x}")
            for name, total in self._sums.items()
        )


def _tensors(content: Any, name: str = "") -> Iterator[tuple[str, Tensor]]:
    if isinstance(content, Tensor):
        yield name, content
    elif isinstance(content, Mapping):
        for key, value in content.items():
            yield from _tensors(value, f"{name}.{key}" if name else str(key))
    elif isinstance(content, (list, tuple)):
        for position, value in enumerate(content):
            yield from _tensors(value, f"{name}.{position}" if name else str(position))
    elif is_dataclass(content) and not isinstance(content, type):
        yield from _tensors({field.name: getattr(content, field.name) for field in fields(content)}, name)


def _digest(row: Tensor) -> int:
    """Of one sample; of a row of integers without the padding, whose length is that of the batch."""
    if row.dim() == 1 and not row.is_floating_point():
        row = _without_padding(row)
    content = row.contiguous().flatten().view(torch.uint8).numpy().tobytes()
    return int.from_bytes(blake2b(content, digest_size=16).digest(), "little")


def _without_padding(row: Tensor) -> Tensor:
    """`row` with each run of equal values at its ends taken down to one."""
    changes = (row[1:] != row[:-1]).nonzero().flatten()
    return row[changes[0] : changes[-1] + 2] if len(changes) else row[:1]
