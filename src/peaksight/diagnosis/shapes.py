"""The dtype and shape that an allocation was taken for, as numbers."""

import math
from functools import lru_cache
from typing import NamedTuple

from peaksight.records import Allocation


class Shape(NamedTuple):
    """A dtype as torch names it (`float32`), and the sizes of the dimensions."""

    dtype: str
    sizes: tuple[int, ...]

    @property
    def numel(self) -> int:
        """The number of elements."""
        return math.prod(self.sizes)


def shape_of(allocation: Allocation) -> Shape:
    """Of `float32[8, 512, 768]`; that of an empty text has no dtype and no sizes."""
    return parsed(allocation.tensor)


@lru_cache(maxsize=65536)
def parsed(tensor: str) -> Shape:
    """Of a text as `float32[8, 512, 768]`."""
    dtype, _, sizes = tensor.partition("[")
    return Shape(dtype, tuple(int(size) for size in sizes.rstrip("]").split(",") if size.strip()))
