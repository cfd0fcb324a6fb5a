"""What torchvision's kernels take beside their results: nms_kernel.cu and deform_conv2d_kernel.cu of torchvision/csrc.

Checked against an H200 (torch 2.11+cu130, torchvision 0.26, 2026-11-28, benchmarks/operators) for 100 to 5,000 boxes
and a deformable convolution of 64 channels.

Limitations:
    The scratch of the sort and of the selection at the end is left out: it is smaller than the overlaps.
"""

import torch

from peaksight.virtual_gpu.kernels.reductions import div_up
from peaksight.virtual_gpu.kernels.temporaries import KernelCall, Result, Rule, Temporaries, together

BOXES_A_WORD = 64
WORD_BYTES = 8
MAX_PARALLEL_IMAGES = 32


def nms(call: KernelCall) -> Temporaries:
    """The order of the scores, the boxes in that order, a bit for each pair of boxes, and which ones are kept."""
    boxes = call.args[0]
    num_boxes = boxes.shape[0]
    overlaps = num_boxes * div_up(num_boxes, BOXES_A_WORD) * WORD_BYTES
    return together(WORD_BYTES * num_boxes, boxes.nbytes, overlaps, num_boxes) if num_boxes else ()


def deform_conv2d(call: KernelCall) -> Temporaries:
    """The unfolded input, and the output twice more."""
    input, weight = call.args[:2]
    return together(call.out.nbytes, _columns_bytes(input, weight, call.out), call.out.nbytes)


def deform_conv2d_backward(call: KernelCall) -> Temporaries:
    """The gradients of input, offsets and mask, beside which the unfolded input lies; then those of weight and bias.

    `deform_conv2d_backward_kernel` of torchvision/csrc/ops/cuda/deform_conv2d_kernel.cu; either has the gradient of the
    output in another order.
    """
    gradient, input, weight = call.args[:3]
    columns, bias = _columns_bytes(input, weight, gradient), call.out[4].nbytes
    ahead = (Result.at(0), Result.at(2), Result.at(3), *together(columns, gradient.nbytes))
    of_bias = (bias, bias, Result.at(4), -bias, -bias)
    return (*ahead, Result.at(1), *together(gradient.nbytes, columns), *of_bias)


def _columns_bytes(input: torch.Tensor, weight: torch.Tensor, output: torch.Tensor) -> int:
    batch = min(input.shape[0], MAX_PARALLEL_IMAGES)
    window = input.shape[1] * weight.shape[2] * weight.shape[3]
    return batch * window * output.shape[2] * output.shape[3] * input.itemsize


# By name: torchvision need not be installed.
TEMPORARIES: dict[object, Rule] = {
    "torchvision::nms": nms,
    "torchvision::deform_conv2d": deform_conv2d,
    "torchvision::_deform_conv2d_backward": deform_conv2d_backward,
}
