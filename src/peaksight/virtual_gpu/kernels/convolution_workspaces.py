"""What a convolution takes beside its results: copies that PyTorch makes, and the workspaces of cuDNN.

The order is that of ATen/native/Convolution.cpp and ATen/native/cudnn/ConvShared.cpp: what lies in another memory
format is copied, each result is made and its kernel gets a workspace. cudnn_convolutions.py and
cudnn_weight_gradients.py say how large that is; it stays listed as `convolution-workspace`. Where the card has no room
for it, `try_plans` in ATen/native/cudnn/Conv_v8.cpp goes on to cuDNN's next kernel.

Limitations:
    No card before Hopper was measured; those with tensor cores are taken to want the same copies. The next kernel is
    taken to need no workspace; cuDNN may have some that need a smaller one. With `cudnn.benchmark` the kernel that wins
    is taken to be the one that runs without it.
"""

import torch

from peaksight.virtual_gpu.kernels import (
    convolution_trials,
    cudnn_convolutions,
    cudnn_weight_gradients,
    depthwise_convolutions,
)
from peaksight.virtual_gpu.kernels.convolution_problem import Convolution
from peaksight.virtual_gpu.kernels.reductions import split_sum
from peaksight.virtual_gpu.kernels.temporaries import (
    EMPTY_CACHE,
    RESULTS,
    Dispensable,
    KernelCall,
    Result,
    Rule,
    Temporaries,
    given_back,
    together,
)
from peaksight.virtual_gpu.kernels.torch_private import suggest_memory_format
from peaksight.virtual_gpu.torch_private import current_autograd_node

aten = torch.ops.aten

# The first cards whose tensor cores take a type.
TENSOR_CORES_SINCE = {torch.float16: (7, 0), torch.bfloat16: (8, 0), torch.float32: (8, 0)}


def forward(call: KernelCall) -> Temporaries | None:
    """The blocks of `convolution`: `_convolution` of ATen/native/Convolution.cpp copies the input.

    `cudnn_convolution` makes its result and then copies the weight.
    """
    input, weight = call.argument("input"), call.argument("weight")
    if not torch.backends.cudnn.enabled:
        return None
    if not input.numel() or not weight.numel():
        return ()
    layout = _memory_format(input, weight)
    of_input, of_weight = _copies(input, layout), _copies(weight, layout)
    before, after = ([*of_weight, *of_input], []) if _is_copied_by_caller(weight) else (of_input, of_weight)
    workspace: Temporaries = ()
    if _takes_tensor_cores(input, call):
        convolution = _convolution(call, call.out, layout)
        workspace = _of_result(convolution, call, is_of_x=convolution.is_transposed)
    return (*before, RESULTS, *after, *workspace, *given_back(after), *given_back(before))


def _is_copied_by_caller(weight: torch.Tensor) -> bool:
    """Whether `weight` is the transposed gradient that `_convolution_double_backward` copies before it calls.

    It asks C++ whether that is on the card, which it is not here.
    """
    node = current_autograd_node()
    is_second = node is not None and node.name().startswith("ConvolutionBackwardBackward")
    return is_second and weight.transpose(0, 1).is_contiguous()


def backward(call: KernelCall) -> Temporaries | None:
    """The blocks of `convolution_backward`: one gradient after the other, and the sum for the bias.

    PyTorch's own kernels begin with that of the weight (`conv_depthwise2d_backward_cuda_out` in DepthwiseConv2d.cu).
    """
    names = ("grad_output", "input", "weight", "output_mask")
    gradient, input, weight, (for_input, for_weight, for_bias) = map(call.argument, names)
    if not torch.backends.cudnn.enabled:
        return None
    if not input.numel() or not weight.numel():
        return ()
    layout = _memory_format(input, weight)
    of_input, of_weight = _gradient_workspaces(call, layout)
    num_multiprocessors = call.rules.multi_processor_count
    inputs = _copies(input, layout) if for_weight else []
    gradients = _copies(gradient, layout)
    weights = _copies(weight, layout)
    parts = [
        (Result.at(0), *weights, *of_input, *(-num_bytes for num_bytes in weights)) if for_input else (),
        (Result.at(1), *of_weight) if for_weight else (),
    ]
    bias = (Result.at(2), *_sum_over_positions(gradient, num_multiprocessors)) if for_bias else ()
    if depthwise_convolutions.has_own_kernels(_convolution(call, gradient, layout)):
        parts.reverse()
    freed = (-num_bytes for num_bytes in gradients)
    return (*inputs, *gradients, *parts[0], *parts[1], *freed, *bias, *(-num_bytes for num_bytes in inputs))


def _gradient_workspaces(call: KernelCall, layout: torch.memory_format) -> tuple[Temporaries, Temporaries]:
    """Blocks for the gradient of the input, and of the weight."""
    if not _takes_tensor_cores(call.argument("input"), call):
        return (), ()
    convolution = _convolution(call, call.argument("grad_output"), layout)
    for_input, for_weight, _ = call.argument("output_mask")
    of_input = _of_result(convolution, call, is_of_x=not convolution.is_transposed) if for_input else ()
    if not for_weight or convolution.is_of_single_channels:
        return of_input, ()
    of_weight = cudnn_weight_gradients.gradient_of_weight(convolution, call.rules.multi_processor_count)
    if not _is_tried(convolution, call, "weight"):
        return of_input, _passing(of_weight)
    return of_input, _after_trial(convolution_trials.gradient_of_weight(convolution), of_weight)


def _of_result(convolution: Convolution, call: KernelCall, *, is_of_x: bool) -> Temporaries:
    """Blocks for `x`, as of gradients, or for `y`."""
    if convolution.is_of_single_channels:
        return ()
    of_result = cudnn_convolutions.gradient_of_input if is_of_x else cudnn_convolutions.forward
    if not _is_tried(convolution, call, "x" if is_of_x else "y"):
        return _passing(of_result(convolution))
    trial = convolution_trials.gradient_of_input if is_of_x else convolution_trials.forward
    return _after_trial(trial(convolution), of_result(convolution))


def _after_trial(trial: int, num_bytes: int) -> Temporaries:
    """The workspace of all plans, which is not kept, then that of the one that runs (`run_single_conv`)."""
    return (*_passing(max(trial, num_bytes)), EMPTY_CACHE, *_passing(num_bytes))


def _is_tried(convolution: Convolution, call: KernelCall, result: str) -> bool:
    """Whether cuDNN tries its kernels: at the first call of a problem, each of its results by itself."""
    if not torch.backends.cudnn.benchmark or depthwise_convolutions.has_own_kernels(convolution):
        return False
    problem = (result, convolution.key)
    is_new = problem not in call.tried
    call.tried.add(problem)
    return is_new


def _convolution(call: KernelCall, output: torch.Tensor, layout: torch.memory_format) -> Convolution:
    input, is_transposed = call.argument("input"), call.argument("transposed")
    x, y = (output, input) if is_transposed else (input, output)
    weight, stride, dilation, groups = map(call.argument, ("weight", "stride", "dilation", "groups"))
    is_channels_last = layout is not torch.contiguous_format
    return Convolution(x, y, weight, tuple(stride), tuple(dilation), groups, is_transposed, is_channels_last)


def _memory_format(input: torch.Tensor, weight: torch.Tensor) -> torch.memory_format:
    """Channels last where the input or the weight is, but for float64 (`cudnn_conv_suggest_memory_format`)."""
    if input.dtype == torch.float64:
        return torch.contiguous_format
    formats = suggest_memory_format(input), suggest_memory_format(weight)
    return next((each for each in formats if each is not torch.contiguous_format), torch.contiguous_format)


def _copies(tensor: torch.Tensor, layout: torch.memory_format) -> list[int]:
    """Bytes of the copy that `contiguous(memory_format=layout)` makes."""
    return [] if tensor.is_contiguous(memory_format=layout) else [tensor.numel() * tensor.itemsize]


def _existing(num_bytes: int) -> list[int]:
    return [Dispensable(num_bytes)] if num_bytes else []


def _passing(num_bytes: int) -> Temporaries:
    return together(*_existing(num_bytes))


def _takes_tensor_cores(input: torch.Tensor, call: KernelCall) -> bool:
    first = TENSOR_CORES_SINCE.get(input.dtype)
    is_allowed = input.dtype != torch.float32 or torch.backends.cudnn.allow_tf32
    return first is not None and is_allowed and call.rules.capability >= first


def _sum_over_positions(gradient: torch.Tensor, num_multiprocessors: int) -> Temporaries:
    dims = [dim for dim in range(gradient.dim()) if dim != 1]
    return together(*split_sum(gradient.shape, gradient.stride(), dims, gradient.dtype, num_multiprocessors))


TEMPORARIES: dict[object, Rule] = {
    aten.convolution.default: forward,
    aten.convolution_backward.default: backward,
}
