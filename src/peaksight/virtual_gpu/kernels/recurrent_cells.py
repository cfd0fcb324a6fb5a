"""Single steps of recurrent networks: on the card the gates of an LSTM or GRU cell are one kernel with a workspace.

Sources: ATen/native/RNN.cpp (`LSTMCell`, `GRUCell`) and ATen/native/cuda/RNN.cu; H200, torch 2.11+cu130, 2026-11-28,
benchmarks/operators ("layer cells").
"""

from collections.abc import Callable, Sequence
from typing import Any

import torch

from peaksight.virtual_gpu.kernels.temporaries import Rule

aten = torch.ops.aten

NUM_GATES, NUM_SAVED = 3, 5  # of a GRU cell, in units of its state
# These kernels take nothing beside their results.
TEMPORARIES: dict[object, Rule] = dict.fromkeys(
    (
        aten._thnn_fused_lstm_cell.default,
        aten._thnn_fused_lstm_cell_backward_impl.default,
        aten._thnn_fused_gru_cell.default,
        aten._thnn_fused_gru_cell_backward.default,
    ),
    lambda call: (),
)


def cell_rules() -> dict[Any, Callable[..., Any]]:
    """What the card runs for each cell; that of a plain network has no kernel of its own."""
    return {aten.lstm_cell.default: _lstm_cell, aten.gru_cell.default: _gru_cell}


def _lstm_cell(
    input: torch.Tensor, hx: Sequence[torch.Tensor], w_ih: torch.Tensor, w_hh: torch.Tensor,
    b_ih: torch.Tensor | None = None, b_hh: torch.Tensor | None = None,
) -> tuple[torch.Tensor, torch.Tensor]:  # fmt: skip
    of_input, of_state = torch.matmul(input, w_ih.t()), torch.matmul(hx[0], w_hh.t())
    hy, cy, _ = aten._thnn_fused_lstm_cell.default(of_input, of_state, hx[1], b_ih, b_hh)
    return hy, cy


def _gru_cell(
    input: torch.Tensor, hx: torch.Tensor, w_ih: torch.Tensor, w_hh: torch.Tensor,
    b_ih: torch.Tensor | None = None, b_hh: torch.Tensor | None = None,
) -> torch.Tensor:  # fmt: skip
    of_input, of_state = torch.matmul(input, w_ih.t()), torch.matmul(hx, w_hh.t())
    return aten._thnn_fused_gru_cell.default(of_input, of_state, hx, b_ih, b_hh)[0]


def fake_kernels() -> dict[str, Callable[..., Any]]:
    """A rule `(mode, run, args, kwargs)` by operator name."""
    return {
        "aten::_thnn_fused_lstm_cell": _lstm,
        "aten::_thnn_fused_gru_cell": _gru,
        "aten::_thnn_fused_gru_cell_backward": _gru_backward,
    }


def _lstm(
    mode: Any, run: Callable[..., Any], args: tuple[Any, ...], kwargs: dict[str, Any]
) -> tuple[torch.Tensor, ...]:
    gates, _, cx, *_ = args
    with mode:
        return tuple(torch.empty_like(like, memory_format=torch.contiguous_format) for like in (cx, cx, gates))


def _gru(
    mode: Any, run: Callable[..., Any], args: tuple[Any, ...], kwargs: dict[str, Any]
) -> tuple[torch.Tensor, torch.Tensor]:
    hx = args[2]
    with mode:
        saved = hx.new_empty(hx.shape[0], NUM_SAVED * hx.shape[1])
        return torch.empty_like(hx, memory_format=torch.contiguous_format), saved


def _gru_backward(
    mode: Any, run: Callable[..., Any], args: tuple[Any, ...], kwargs: dict[str, Any]
) -> tuple[torch.Tensor | None, ...]:
    gradient, saved, has_bias = args
    with mode:
        of_input, of_state = (
            saved.new_empty(saved.shape[0], saved.shape[1] // NUM_SAVED * NUM_GATES) for _ in range(2)
        )
        of_hx = torch.empty_like(gradient, memory_format=torch.contiguous_format)
        biases = (of_input.sum(0), of_state.sum(0)) if has_bias else (None, None)
        return of_input, of_state, of_hx, *biases
