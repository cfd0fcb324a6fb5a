"""A convolution as cuDNN sees it: three tensors, and how windows lie."""

from dataclasses import dataclass, replace
from math import prod

import torch

from peaksight.virtual_gpu.kernels.reductions import div_up

HALF = (torch.float16, torch.bfloat16)
DESCRIPTOR_BYTES = 16
SHORT_SUM = 768
GROUPS_AT_A_TIME = 8
MANY_IN_GROUPS = 128
SMALL_WINDOW = 27
FEWEST_PADDED = 32
# Of a matrix product in single precision.
FLOAT_BYTES = 4
TILE = 128
TILE_BYTES = FLOAT_BYTES * TILE * TILE


@dataclass(frozen=True, slots=True)
class Convolution:
    """`x` (N, C, ...) by `weight` (K, C / groups, ...) to `y` (N, K, ...), as cuDNN sees it.

    The input of a transposed convolution is its `y`. The tensors are known by shape alone.
    """

    x: torch.Tensor
    y: torch.Tensor
    weight: torch.Tensor
    stride: tuple[int, ...]
    dilation: tuple[int, ...]
    groups: int
    is_transposed: bool
    is_channels_last: bool

    @property
    def key(self) -> tuple[object, ...]:
        """What tells problems apart, as `ConvolutionParams` of ATen/native/cudnn/ConvShared.cpp; padding is in `y`."""
        shapes = (tuple(tensor.shape) for tensor in (self.x, self.y, self.weight))
        return *shapes, self.x.dtype, self.stride, self.dilation, self.groups, self.is_channels_last

    @property
    def is_half(self) -> bool:
        """Sixteen bits to a number."""
        return self.x.dtype in HALF

    @property
    def kernel(self) -> tuple[int, ...]:
        """The window's size."""
        return tuple(self.weight.shape[2:])

    @property
    def is_of_images(self) -> bool:
        """Whether windows lie in two dimensions and see all channels."""
        return len(self.kernel) == 2 and self.groups == 1

    @property
    def channels(self) -> int:
        """Channels of `x` that one of `y` sees."""
        return self.x.shape[1] // self.groups

    @property
    def filters(self) -> int:
        """Channels of `y`."""
        return self.y.shape[1]

    @property
    def sum_length(self) -> int:
        """How many products make one element of `y`."""
        return prod(self.weight.shape[1:])

    @property
    def num_positions(self) -> int:
        """Positions of `y` in the whole batch: the rows of the product."""
        return self.y.numel() // self.filters

    @property
    def num_pixels(self) -> int:
        """Positions of `x` in the whole batch."""
        return self.x.numel() // self.x.shape[1]

    @property
    def is_product(self) -> bool:
        """Whether each position sees itself alone: a matrix product."""
        return prod(self.kernel) == 1 and prod(self.stride) == 1

    @property
    def is_depthwise(self) -> bool:
        """One group for each channel: PyTorch's own kernels, unless channels come last."""
        return self.groups > 1 and self.groups == self.x.shape[1]

    @property
    def is_of_single_channels(self) -> bool:
        """One channel in, one out, in half, as of masks: nothing is copied, but where windows lie side by side."""
        return self.is_half and self.x.shape[1] == self.filters == 1 and (self.is_product or self.overlaps)

    @property
    def overlaps(self) -> bool:
        """Whether windows overlap."""
        return self.kernel[-1] > self.stride[-1]

    @property
    def padded_filters(self) -> int:
        """Channels of `y` that can be loaded by eights in half, or by fours, as of windows with many filters.

        Read off 54 filters over three sizes of images, in single precision; in half 202 of 212 problems are padded that
        have fewer than 32 filters, and so are volumes that end in one (a network of stereo pictures).
        """
        filters, alignment = self.filters, 8 if self.is_half else 4
        is_padded = filters >= FEWEST_PADDED or self.is_half or len(self.kernel) > 2
        if self.groups > 1 or prod(self.kernel) == 1 or not is_padded:
            return filters
        return div_up(filters, alignment) * alignment

    def copies(self, alignment: int = 1, *, x: bool = True, y: bool = True) -> int:
        """Bytes of copies of `x` and the weight, their channels aligned, and of `y` with padded filters.

        The weight of a single tap lies as it should, unless `y` is written otherwise.
        """
        aligned, filters = div_up(self.channels, alignment) * alignment, self.filters
        weight = self.weight.nbytes * self.padded_filters // filters
        of_weight = weight * aligned // self.channels if prod(self.kernel) > 1 or not y else 0
        of_x = self.x.nbytes * aligned // self.channels
        return x * of_x + y * (self.y.nbytes * self.padded_filters // filters) + of_weight + DESCRIPTOR_BYTES

    def in_eights(self, many: int = MANY_IN_GROUPS) -> "Convolution":
        """What cuDNN runs at a time: eight of the groups that have `many` channels, of `x` or of `y`."""
        each = max(self.channels, self.filters // self.groups)
        return self if each < many or self.is_channels_last else self.eight_groups()

    def eight_groups(self) -> "Convolution":
        """The first eight of more groups."""
        if self.groups <= GROUPS_AT_A_TIME:
            return self
        x, y = (tensor[:, : GROUPS_AT_A_TIME * tensor.shape[1] // self.groups] for tensor in (self.x, self.y))
        weight = self.weight[: GROUPS_AT_A_TIME * self.weight.shape[0] // self.groups]
        return replace(self, x=x, y=y, weight=weight, groups=GROUPS_AT_A_TIME)
