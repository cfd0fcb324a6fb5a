"""What softmax takes beside its results.

Source: ATen/native/cuda/SoftMax.cu; to the byte what an H200 took (torch 2.11+cu130, 2026-11-28, benchmarks/operators).
"""

import torch

from peaksight.virtual_gpu.kernels.layouts import contiguous_copies, is_dense
from peaksight.virtual_gpu.kernels.temporaries import KernelCall, Rule, Temporaries, together

aten = torch.ops.aten


def forward(call: KernelCall) -> Temporaries:
    """Its input in one piece."""
    return together(*contiguous_copies(call.args[0]))


def softmax_backward(call: KernelCall) -> Temporaries:
    """The product of gradient and output, whose sum each row subtracts."""
    grad, output = call.args[:2]
    product = output.numel() * output.itemsize
    permuted = is_dense(grad) and not grad.is_contiguous()
    return together(*filter(None, (product, product * permuted)))


def log_softmax_backward(call: KernelCall) -> Temporaries:
    """Gradient and output in one piece."""
    return together(*contiguous_copies(*call.args[:2]))


TEMPORARIES: dict[object, Rule] = {
    aten._softmax.default: forward,
    aten._log_softmax.default: forward,
    aten._softmax_backward_data.default: softmax_backward,
    aten._log_softmax_backward_data.default: log_softmax_backward,
}
