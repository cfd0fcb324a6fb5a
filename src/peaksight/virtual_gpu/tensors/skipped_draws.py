"""Random numbers of the CPU for weights that are fake: nobody draws them, and the generator goes on as if one had.

What the script draws after that, such as the order of its samples and their lengths, is what the real run draws.
"""

from collections.abc import Callable
from typing import Any

import torch

from peaksight.virtual_gpu.torch_private import FakeTensor

aten = torch.ops.aten

# A second or two of the host: the weights of a model of a billion.
MAX_NUMBERS = 1 << 30
# Of a draw whose numbers of the generator aren't known: it is made for real.
MAX_DRAWN_NUMEL = 1 << 20
_CHUNK_NUMEL = 1 << 16
# `normal_fill` in ATen/native/cpu/DistributionTemplates.h draws the last 16 anew where they are not a whole group.
_GROUP = 16


class SkippedDraws:
    """The numbers that generators of the CPU were taken past in one run."""

    def __init__(self) -> None:
        """None yet."""
        self._num_numbers = 0

    def pass_by(self, func: Any, args: tuple[Any, ...], kwargs: dict[str, Any], out: Any) -> bool:
        """After `out = func(*args, **kwargs)` drew nothing: have the generator go on; False where that takes too long.

        `kwargs` are those of the script, with its generator if it gave one.
        """
        num_numbers = _num_numbers(func, out)
        if num_numbers is None:
            return _draw(func, args, kwargs, out)
        self._num_numbers += num_numbers
        if self._num_numbers > MAX_NUMBERS:
            return False
        _go_on(kwargs.get("generator"), num_numbers)
        return True


def _num_numbers(func: Any, out: FakeTensor) -> int | None:
    """How many numbers of 32 bits the generator gives, None where that is not known."""
    count = _COUNTS.get(func)
    if count is None or not out.dtype.is_floating_point or not out.is_contiguous():
        return None
    num_numbers = count(out)
    return None if num_numbers is None else num_numbers * (2 if out.dtype == torch.float64 else 1)


def _uniform(out: FakeTensor) -> int:
    return out.numel()


def _normal(out: FakeTensor) -> int | None:
    """Of half precision only where there is no rest to draw anew."""
    rest = out.numel() % _GROUP
    if out.numel() < _GROUP or (rest and out.itemsize < torch.float32.itemsize):
        return None
    return out.numel() + (_GROUP if rest else 0)


def _go_on(generator: torch.Generator | None, num_numbers: int) -> None:
    chunk = torch.empty(min(num_numbers, _CHUNK_NUMEL), dtype=torch.uint8, device="cpu")
    for start in range(0, num_numbers, _CHUNK_NUMEL):
        chunk[: num_numbers - start].random_(generator=generator)


def _draw(func: Any, args: tuple[Any, ...], kwargs: dict[str, Any], out: FakeTensor) -> bool:
    """Draw for real into a tensor that nobody keeps."""
    is_into = bool(args) and args[0] is out
    if not is_into or out.numel() > MAX_DRAWN_NUMEL or any(isinstance(arg, FakeTensor) for arg in args[1:]):
        return False
    func(torch.empty_strided(out.shape, out.stride(), dtype=out.dtype, device="cpu"), *args[1:], **kwargs)
    return True


_COUNTS: dict[Any, Callable[[FakeTensor], int | None]] = {
    **dict.fromkeys((aten.uniform_.default, aten.rand.default, aten.rand.generator), _uniform),
    **dict.fromkeys((aten.normal_.default, aten.randn.default, aten.randn.generator), _normal),
    aten.normal.float_float: _normal,
}
