"""Recurrent networks."""

from collections.abc import Callable, Iterator
from itertools import product
from typing import Any

import torch
from torch import nn

from benchmarks.operators.layers.making import BATCH_FIRST, FLOATS, Variant, in_module, randn, short


def recurrent() -> Iterator[Variant]:
    """LSTM, GRU and plain recurrent networks, whose reserve and workspace only cuDNN knows."""
    shapes = ((64, 128, 256, 512), (16, 50, 80, 200), (8, 33, 300, 1024), (128, 20, 64, 64), (1, 100, 40, 72))
    options: tuple[dict, ...] = (
        {}, {"bidirectional": True}, {"num_layers": 2}, {"num_layers": 3, "dropout": 0.1},
        {"num_layers": 2, "bidirectional": True, "dropout": 0.3}, {"num_layers": 4}, {"bias": False},
    )  # fmt: skip
    for kind, option, shape, dtype in product((nn.LSTM, nn.GRU, nn.RNN), options, shapes, FLOATS):
        if (kind is nn.RNN and dtype is torch.bfloat16) or (shape[0] == 1 and len(option) > 1):
            continue
        yield _recurrent(kind, shape, dtype, BATCH_FIRST | option)
    for option in ({"proj_size": 64}, {"proj_size": 64, "num_layers": 2, "bidirectional": True}):
        yield _recurrent(nn.LSTM, shapes[0], torch.float32, BATCH_FIRST | option)
        yield _recurrent(nn.LSTM, shapes[1], torch.float16, BATCH_FIRST | option)
    yield _recurrent(nn.RNN, shapes[0], torch.float32, {"nonlinearity": "relu"})
    for kind, training, shape in product((nn.LSTM, nn.GRU), (True, False), shapes[:2]):
        yield _recurrent(kind, shape, torch.float32, {"num_layers": 2, "dropout": 0.2}, training=training)
        yield _recurrent(kind, shape, torch.float32, {"num_layers": 2}, training=training, no_grad=True)
        yield _recurrent(kind, shape, torch.float32, {"num_layers": 2}, packed=True)
        yield _recurrent(kind, shape, torch.float32, {"num_layers": 2}, autocast=True)


def _recurrent(
    kind: type[nn.RNNBase], shape: tuple, dtype: torch.dtype, option: dict, *, training: bool = True,
    no_grad: bool = False, packed: bool = False, autocast: bool = False,
) -> Variant:  # fmt: skip
    batch, time, inputs, hidden = shape
    flags = f"training={training} no_grad={no_grad} packed={packed} autocast={autocast}"

    def prepare() -> Callable[[], Any]:
        layer = kind(inputs, hidden, **option).to("cuda", dtype).train(training)
        sequence = randn(*((batch, time) if option.get("batch_first") else (time, batch)), inputs, dtype=dtype)
        lengths = torch.linspace(time, max(time // 3, 1), batch).long()

        def run() -> Any:
            given: Any = sequence
            if packed:
                given = nn.utils.rnn.pack_padded_sequence(sequence, lengths)
            with torch.set_grad_enabled(not no_grad), torch.autocast("cuda", enabled=autocast):
                out = layer(given)
            return (out[0].data, out[1]) if packed else out

        return run

    return f"{kind.__name__} {shape} {short(dtype)} {option} {flags}", prepare


def cells() -> Iterator[Variant]:
    """Single steps of recurrent networks."""
    for kind, dtype, bias in product((nn.LSTMCell, nn.GRUCell, nn.RNNCell), FLOATS, (True, False)):
        yield in_module(
            f"{kind.__name__} {short(dtype)} bias={bias}", lambda: kind(256, 512, bias=bias),
            lambda: randn(256, 256, dtype=dtype), dtype=dtype,
        )  # fmt: skip
