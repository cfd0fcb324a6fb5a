"""Matrix products and reductions."""

from collections.abc import Callable, Iterator
from itertools import product
from typing import Any

import torch
import torch.nn.functional as F
from torch import nn

from benchmarks.operators.layers.making import FLOATS, Variant, in_module, of, randn, short


def products() -> Iterator[Variant]:
    """Matrix products: which become one product and which many, and where copies are made."""
    for dtype, bias in product(FLOATS, (True, False)):
        flags = f"{short(dtype)} bias={bias}"
        for shape in ((512, 256), (16, 128, 256), (4, 8, 64, 256), (256,), (1, 256)):
            yield in_module(f"linear {shape} {flags}", lambda: nn.Linear(256, 384, bias=bias),
                            lambda: randn(*shape, dtype=dtype), dtype=dtype)  # fmt: skip
        yield in_module(f"linear transposed {flags}", lambda: nn.Linear(256, 384, bias=bias),
                        lambda: randn(256, 16, 256, dtype=dtype).transpose(0, 1), dtype=dtype)  # fmt: skip
        yield in_module(f"linear autocast {flags}", lambda: _InAutocast(nn.Linear(256, 384, bias=bias)),
                        lambda: randn(16, 128, 256), dtype=torch.float32)  # fmt: skip
    for dtype in FLOATS:
        flags = short(dtype)
        heads = lambda: randn(8, 12, 128, 64, dtype=dtype)
        tokens = lambda: randn(8, 128, 768, dtype=dtype)
        yield of(f"matmul heads {flags}", lambda q, k: q @ k.transpose(-1, -2), heads, heads)
        yield of(f"einsum heads {flags}", lambda q, k: torch.einsum("bhid,bhjd->bhij", q, k), heads, heads)
        yield of(f"einsum mixed {flags}", lambda q, k: torch.einsum("bid,bjd->bij", q, k), tokens, tokens)
        yield of(f"einsum weights {flags}", lambda q, w: torch.einsum("bid,de->bie", q, w), tokens,
                 lambda: randn(768, 256, dtype=dtype))  # fmt: skip
        yield of(f"matmul vector {flags}", lambda q, w: q @ w, tokens, lambda: randn(768, dtype=dtype))
        yield of(f"matmul broadcast {flags}", lambda q, w: w @ q, tokens, lambda: randn(128, 128, dtype=dtype))
        yield of(f"matmul left {flags}", lambda q, w: q @ w, heads, lambda: randn(64, 64, dtype=dtype))
        yield of(f"baddbmm {flags}", lambda b, q: torch.baddbmm(b, q, q.transpose(1, 2)),
                 lambda: randn(8, 128, 128, dtype=dtype), tokens)  # fmt: skip
        yield of(f"bilinear {flags}", F.bilinear, lambda: randn(256, 32, dtype=dtype),
                 lambda: randn(256, 48, dtype=dtype), lambda: randn(64, 32, 48, dtype=dtype))  # fmt: skip
        yield of(f"addmv {flags}", torch.addmv, lambda: randn(128, dtype=dtype), lambda: randn(128, 64, dtype=dtype),
                 lambda: randn(64, dtype=dtype))  # fmt: skip
        yield of(f"tensordot {flags}", lambda a, b: torch.tensordot(a, b, ([1, 2], [1, 2])), tokens, tokens)
    yield of("stft", _spectrogram, lambda: randn(4, 16_000))
    yield of("rfft2", lambda x: torch.fft.irfft2(torch.fft.rfft2(x)), lambda: randn(8, 32, 64, 64))


def _spectrogram(sound: torch.Tensor) -> torch.Tensor:
    return torch.stft(sound, 512, window=torch.hann_window(512, device="cuda"), return_complex=True).abs()


class _InAutocast(nn.Module):
    def __init__(self, inner: nn.Module) -> None:
        super().__init__()
        self.inner = inner

    def forward(self, *args: Any) -> Any:
        with torch.autocast("cuda", torch.bfloat16):
            return self.inner(*args)


def reductions() -> Iterator[Variant]:
    """Sums and norms over many rows, few rows and everything."""
    functions: dict[str, Callable] = {
        "sum": torch.Tensor.sum, "mean": torch.Tensor.mean, "amax": torch.Tensor.amax, "norm": torch.norm,
        "var": torch.Tensor.var, "argmax": torch.Tensor.argmax, "max": torch.Tensor.max, "any": torch.Tensor.any,
        "prod": torch.Tensor.prod, "vector_norm": torch.linalg.vector_norm,
    }  # fmt: skip
    for (name, function), dtype in product(functions.items(), FLOATS):
        for shape in ((4096, 768), (100_000, 64), (16, 1_000_000), (8, 3, 256, 256)):
            make = lambda: randn(*shape, dtype=dtype)
            yield of(f"{name} {shape} {short(dtype)}", lambda x: function(x), make)
            if name not in ("any",):
                yield of(f"{name} {shape} dim 0 {short(dtype)}", lambda x: function(x, dim=0), make)
                yield of(f"{name} {shape} dim -1 {short(dtype)}", lambda x: function(x, dim=-1), make)
    for sizes in ((1000, 2000), (100_000, 1_000_000, 30)):
        yield of(f"clip_grad_norm_ {sizes}", _clip(sizes))


def _clip(sizes: tuple[int, ...]) -> Callable[[], Any]:
    def run() -> Any:
        parameters = [nn.Parameter(torch.zeros(size, device="cuda")) for size in sizes]
        for parameter in parameters:
            parameter.grad = torch.zeros_like(parameter)
        return nn.utils.clip_grad_norm_(parameters, 1.0)

    return run
