"""Recurrent layers as cuDNN runs them: all steps of all layers are one operator, `_cudnn_rnn`.

Sources: ATen/native/RNN.cpp and ATen/native/cudnn/RNN.cpp. Weights are views of one buffer, which
`nn.RNNBase.flatten_parameters` makes; where they are not (bfloat16, replaced weights), each call makes one.
"""

from collections.abc import Callable, Sequence
from itertools import accumulate
from typing import Any

import torch
import torch.backends.cudnn.rnn as cudnn_rnn

from peaksight.overlays.patches import Patches
from peaksight.virtual_gpu.kernels.recurrent_sizes import GRU, LSTM, RELU, TANH

aten = torch.ops.aten

MODES = {
    aten.lstm.input: LSTM,
    aten.lstm.data: LSTM,
    aten.gru.input: GRU,
    aten.gru.data: GRU,
    aten.rnn_tanh.input: TANH,
    aten.rnn_tanh.data: TANH,
    aten.rnn_relu.input: RELU,
    aten.rnn_relu.data: RELU,
}
MODE_OF_NAME = {"RNN_RELU": RELU, "RNN_TANH": TANH, "LSTM": LSTM, "GRU": GRU}
ACCEPTED = (torch.float16, torch.bfloat16, torch.float32, torch.float64)
FLATTENED = (torch.float16, torch.float32, torch.float64)


def recurrent_rules(note: Callable[[str], None]) -> dict[Any, Callable[..., Any]]:
    """What the card runs for each recurrent layer; `note(slug)` is told of those that cuDNN does not run."""
    return {op: _layers(op, mode, note) for op, mode in MODES.items()}


def install(patches: Patches) -> None:
    """Flatten weights as with cuDNN until `patches` is left."""
    patches.set(torch.backends.cudnn, "is_acceptable", lambda tensor: _runs(tensor, FLATTENED))
    patches.set(torch, "_use_cudnn_rnn_flatten_weight", lambda: True)
    patches.set(cudnn_rnn, "get_cudnn_mode", MODE_OF_NAME.__getitem__)


def _runs(tensor: torch.Tensor, dtypes: Sequence[torch.dtype]) -> bool:
    return torch.backends.cudnn.enabled and tensor.is_cuda and tensor.dtype in dtypes


def _layers(op: Any, mode: int, note: Callable[[str], None]) -> Callable[..., Any]:
    """`op(input, [batch_sizes,] states, weights, has_biases, num_layers, dropout, train, bidirectional[, first])`."""

    def kernel(input: torch.Tensor, *args: Any) -> Any:
        if not (_runs(input, ACCEPTED) and input.numel()):
            note("recurrent-layers")
            return op.decompose(input, *args)
        is_packed = op._overloadname == "data"
        batch_sizes = args[0].tolist() if is_packed else []
        states, weights, has_biases, num_layers, dropout, train, bidirectional, *batch_first = args[is_packed:]
        hx, cx = states if mode == LSTM else (states, None)
        hidden_size, proj_size = _sizes(hx, cx)
        stride = (4 if has_biases else 2) + (proj_size > 0)
        out, hy, cy, _, _ = aten._cudnn_rnn.default(
            input, weights, stride, flat_buffer(weights, stride), hx, cx, mode, hidden_size, proj_size, num_layers,
            any(batch_first), dropout, train, bidirectional, batch_sizes, None,
        )  # fmt: skip
        return (out, hy) if cx is None else (out, hy, cy)

    return kernel


def _sizes(hx: torch.Tensor, cx: torch.Tensor | None) -> tuple[int, int]:
    """Hidden size, and the size of its projection or zero."""
    if cx is None or cx.shape[2] == hx.shape[2]:
        return hx.shape[2], 0
    return cx.shape[2], hx.shape[2]


def flat_numel(weights: Sequence[torch.Tensor], stride: int) -> int:
    """Elements of the buffer for weights of which each cell has `stride`; there is always room for two biases."""
    return sum(w.numel() for w in weights if w.dim() == 2) + 2 * sum(w.shape[0] for w in weights[::stride])


def _offsets(weights: Sequence[torch.Tensor]) -> list[int]:
    """Where in the buffer each weight lies: the matrices of all cells come first, then the biases."""
    order = sorted(range(len(weights)), key=lambda index: -weights[index].dim())
    starts = accumulate((weights[index].numel() for index in order), initial=0)
    offset_of = dict(zip(order, starts, strict=False))
    return [offset_of[index] for index in range(len(weights))]


def views(buffer: torch.Tensor, weights: Sequence[torch.Tensor]) -> list[torch.Tensor]:
    """The part of `buffer` for each weight, in its shape."""
    places = zip(weights, _offsets(weights), strict=True)
    return [buffer.narrow(0, offset, weight.numel()).view(weight.shape) for weight, offset in places]


def flat_buffer(weights: Sequence[torch.Tensor], stride: int) -> torch.Tensor | None:
    """The buffer that all weights are views of, None where they are not: `try_get_weight_buf`."""
    storage, numel = weights[0].untyped_storage(), flat_numel(weights, stride)
    places = [(w.untyped_storage()._cdata, w.storage_offset()) for w in weights]
    if storage.nbytes() < numel * weights[0].itemsize or not weights[-1].is_contiguous():
        return None
    if places != [(storage._cdata, offset) for offset in _offsets(weights)]:
        return None
    return weights[0].detach().as_strided((numel,), (1,), 0)


def half_copies(weights: Sequence[torch.Tensor], stride: int) -> tuple[torch.Tensor, list[torch.Tensor]]:
    """A flat buffer in half precision and its parts, through which gradients reach `weights`: AutocastRNN.cpp."""
    buffer = weights[0].new_zeros(flat_numel(weights, stride), dtype=torch.float16)
    return buffer, [view.data.copy_(weight) for view, weight in zip(views(buffer, weights), weights, strict=True)]
