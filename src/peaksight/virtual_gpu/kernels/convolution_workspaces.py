"""The copies that cuDNN makes of a convolution's tensors, in its workspace.

Tensor-core kernels want channels last and aligned channels. What lies otherwise is copied into the workspace, for the
length of one kernel: input, output and weight. Read off 229 cases on an H100 and an H200 (torch 2.11+cu130, cuDNN 9.19,
2026-11-28, benchmarks/kernels and benchmarks/operators).

Limitations:
    Which kernel runs is cuDNN's choice. Some single-precision forwards copy only two of the three tensors. The partial
    sums of a weight's gradient are counted as at most 14, or one tile a multiprocessor; some kernels take up to 17 MB
    more, and in single precision at times far more (470 MB for a dilated one). What is not given here is listed as
    `convolution-workspace`.
"""

from dataclasses import dataclass
from math import prod

import torch

from peaksight.virtual_gpu.kernels.reductions import div_up, split_sum
from peaksight.virtual_gpu.kernels.temporaries import KernelCall, Rule, Temporaries, together
from peaksight.virtual_gpu.torch_private import suggest_memory_format

aten = torch.ops.aten

HALF = (torch.float16, torch.bfloat16)
TENSOR_CORES_SINCE = (8, 0)
DESCRIPTOR_BYTES = 16
FEW_CHANNELS = 4
FLOAT_BYTES = 4
MOST_SPLITS = 14
TILE_BYTES = 128 * 128 * FLOAT_BYTES
SMALL_WINDOW = 27


@dataclass(frozen=True, slots=True)
class Convolution:
    """One convolution: `input` (N, C, ...), `output` and `weight`, by shape."""

    input: torch.Tensor
    output: torch.Tensor
    weight: torch.Tensor
    stride: tuple[int, ...]
    groups: int

    @property
    def kernel(self) -> tuple[int, ...]:
        """The window's size."""
        return tuple(self.weight.shape[2:])

    @property
    def is_channels_last(self) -> bool:
        """Whether the tensors lie as the kernels want them."""
        formats = suggest_memory_format(self.input), suggest_memory_format(self.weight)
        return any(format is not torch.contiguous_format for format in formats)

    @property
    def is_pointwise(self) -> bool:
        """A matrix product in disguise."""
        return prod(self.kernel) == 1 and prod(self.stride) == 1

    @property
    def is_depthwise(self) -> bool:
        """One group for each channel: PyTorch's own kernels unless channels come last."""
        return self.groups > 1 and self.groups == self.input.shape[1]

    def copies(self, alignment: int, *, output: bool = True) -> int:
        """Bytes of the input and the weight with their channels aligned, and of the output."""
        channels = self.input.shape[1] // self.groups
        padded = div_up(channels, alignment) * alignment / channels
        weight = self.weight.nbytes if prod(self.kernel) > 1 else 0
        return int((self.input.nbytes + weight) * padded) + (self.output.nbytes if output else 0) + DESCRIPTOR_BYTES


def forward(call: KernelCall) -> Temporaries | None:
    """The workspace of `convolution`."""
    input, weight, stride, groups = (call.argument(name) for name in ("input", "weight", "stride", "groups"))
    convolution = Convolution(input, call.out, weight, tuple(stride), groups)
    if not _takes_tensor_cores(input, call):
        return None
    if _gathers_directly(convolution):
        return ()
    return together(*_copied(convolution, vector=4, output=not convolution.is_channels_last))


def backward(call: KernelCall) -> Temporaries | None:
    """The workspaces of `convolution_backward`, one gradient after the other, and the sum for the bias."""
    names = ("grad_output", "input", "weight", "stride", "groups", "output_mask")
    gradient, input, weight, stride, groups, (for_input, for_weight, for_bias) = map(call.argument, names)
    convolution = Convolution(input, gradient, weight, tuple(stride), groups)
    if not _takes_tensor_cores(input, call):
        return None
    of_input = _copied(convolution, vector=4) if for_input else ()
    of_weight = _for_weight(convolution, call.rules.multi_processor_count) if for_weight else ()
    of_bias = _sum_over_positions(gradient, call.rules.multi_processor_count) if for_bias else ()
    return (*together(*of_input), *together(*of_weight), *together(*of_bias))


def _takes_tensor_cores(input: torch.Tensor, call: KernelCall) -> bool:
    cudnn = torch.backends.cudnn
    if not cudnn.enabled or cudnn.benchmark or call.rules.capability < TENSOR_CORES_SINCE:
        return False
    return input.dtype in HALF or (input.dtype == torch.float32 and cudnn.allow_tf32)


def _copied(convolution: Convolution, vector: int, *, output: bool = True) -> tuple[int, ...]:
    """The one block of copies, where any is needed; `vector` elements are loaded at once."""
    is_half = convolution.input.dtype in HALF
    channels = convolution.input.shape[1] // convolution.groups
    if convolution.is_depthwise:
        return ()
    if convolution.is_channels_last:
        return (convolution.copies(8 if is_half else 1, output=output),) if channels < FEW_CHANNELS else ()
    if convolution.is_pointwise:
        return (convolution.copies(1),) if prod(convolution.input.shape[2:]) % vector else ()
    if channels < FEW_CHANNELS and not is_half and not _overlaps(convolution):
        return ()
    return (convolution.copies(8 if is_half else 1),)


def _for_weight(convolution: Convolution, num_multiprocessors: int) -> tuple[int, ...]:
    """Copies and partial sums in one block: a pointwise one sums image by image, others tile by tile."""
    copied = sum(_copied(convolution, vector=4 if convolution.input.dtype == torch.float32 else 8))
    partial = FLOAT_BYTES * convolution.weight.numel()
    if convolution.is_depthwise:
        return ()
    if convolution.is_pointwise and not copied and not convolution.is_channels_last:
        return (partial * convolution.input.shape[0],)
    return (copied + min(MOST_SPLITS * partial, num_multiprocessors * TILE_BYTES),)


def _overlaps(convolution: Convolution) -> bool:
    """A stem whose windows overlap by more than half, as in residual networks."""
    return len(convolution.kernel) == 2 and convolution.kernel[0] > 2 * convolution.stride[0]


def _gathers_directly(convolution: Convolution) -> bool:
    """The forward of a stem in half with few channels and a small window, such as a patch of 4 x 4."""
    is_small = len(convolution.kernel) > 1 and prod(convolution.kernel) <= SMALL_WINDOW
    return convolution.input.dtype in HALF and convolution.input.shape[1] < FEW_CHANNELS and is_small


def _sum_over_positions(gradient: torch.Tensor, num_multiprocessors: int) -> tuple[int, ...]:
    dims = [dim for dim in range(gradient.dim()) if dim != 1]
    return tuple(split_sum(gradient.shape, gradient.stride(), dims, gradient.dtype, num_multiprocessors))


TEMPORARIES: dict[object, Rule] = {
    aten.convolution.default: forward,
    aten.convolution_backward.default: backward,
}
