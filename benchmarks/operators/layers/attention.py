"""Attention and the layers around it."""

from collections.abc import Callable, Iterator
from itertools import product
from typing import Any

import torch
import torch.nn.functional as F
from torch import nn
from torch.nn.attention import SDPBackend, sdpa_kernel

from benchmarks.operators.layers.making import FLOATS, Variant, randn, short


def transformers() -> Iterator[Variant]:
    """nn.MultiheadAttention and the layers above it, on their training and on their fast path."""
    for dtype, training, masked in product(FLOATS, (True, False), (False, True)):
        mask = torch.zeros(8, 128, dtype=torch.bool)
        mask[:, 100:] = True
        mask[1, 50:] = True
        kwargs = {"src_key_padding_mask": mask.cuda} if masked else {}
        flags = f"{short(dtype)} training={training} masked={masked}"
        yield _encoder(f"TransformerEncoder {flags}", dtype, training, kwargs, {}, no_grad=not training)
        yield _encoder(f"TransformerEncoder grad {flags}", dtype, training, kwargs, {})
        if dtype is torch.float32:
            yield _encoder(f"autocast {flags}", dtype, training, kwargs, {}, no_grad=not training, autocast=True)
            yield _encoder(f"norm_first {flags}", dtype, training, kwargs, {"norm_first": True, "activation": "gelu"},
                           no_grad=not training)  # fmt: skip
        kwargs = {"key_padding_mask": mask.cuda} if masked else {}
        for weights in (True, False):
            yield _attention(f"MultiheadAttention weights={weights} {flags}", dtype, training, kwargs, weights)


def _encoder(
    signature: str, dtype: torch.dtype, training: bool, masks: dict, option: dict, *, no_grad: bool = False,
    autocast: bool = False,
) -> Variant:  # fmt: skip
    def prepare() -> Callable[[], Any]:
        layer = nn.TransformerEncoderLayer(256, 4, 1024, batch_first=True, **option)
        encoder = nn.TransformerEncoder(layer, 2).to("cuda", dtype).train(training)
        source = randn(8, 128, 256, dtype=dtype, grad=not no_grad)
        given = {name: make() for name, make in masks.items()}

        def run() -> Any:
            with torch.set_grad_enabled(not no_grad), torch.autocast("cuda", torch.bfloat16, enabled=autocast):
                return encoder(source, **given)

        return run

    return signature, prepare


def _attention(signature: str, dtype: torch.dtype, training: bool, masks: dict, weights: bool) -> Variant:
    def prepare() -> Callable[[], Any]:
        layer = nn.MultiheadAttention(256, 4, dropout=0.1, batch_first=True).to("cuda", dtype).train(training)
        source = randn(8, 128, 256, dtype=dtype)
        given = {name: make() for name, make in masks.items()}

        def run() -> Any:
            with torch.set_grad_enabled(training):
                return layer(source, source, source, need_weights=weights, **given)

        return run

    return signature, prepare


def attention() -> Iterator[Variant]:
    """scaled_dot_product_attention: what the choice between kernels looks at."""
    shapes = (
        ((2, 8, 256, 64), (2, 8, 256, 64)), ((2, 8, 100, 64), (2, 8, 300, 64)), ((2, 8, 1, 64), (2, 8, 300, 64)),
        ((2, 8, 256, 64), (2, 2, 256, 64)), ((2, 4, 256, 72), (2, 4, 256, 72)), ((2, 4, 256, 36), (2, 4, 256, 36)),
        ((2, 4, 256, 160), (2, 4, 256, 160)), ((2, 4, 256, 256), (2, 4, 256, 256)), ((8, 256, 64), (8, 256, 64)),
        ((2, 4, 256, 192), (2, 4, 256, 192)),
    )  # fmt: skip
    masks = ("none", "causal", "float", "bool", "float grad", "unaligned", "broadcast")
    for dtype, (query, key), mask in product(FLOATS, shapes, masks):
        yield _sdpa(query, key, dtype, mask)
    for backend, dtype, mask in product(SDPBackend.__members__.values(), FLOATS, masks[:4]):
        if backend is not SDPBackend.ERROR:
            yield _sdpa(*shapes[0], dtype, mask, backend=backend)
    for dtype in FLOATS:
        yield _sdpa(*shapes[0], dtype, "none", dropout=0.1)
        yield _sdpa(*shapes[0], dtype, "bool", dropout=0.1)
        yield _sdpa(*shapes[0], dtype, "none", transposed=True)
        yield _sdpa(*shapes[0], dtype, "causal", transposed=True)
        yield _sdpa(*shapes[0], dtype, "none", grad=False)
        yield _sdpa(*shapes[0], dtype, "float", grad=False)


def _sdpa(
    query: tuple, key: tuple, dtype: torch.dtype, mask: str, *, backend: Any = None, dropout: float = 0.0,
    transposed: bool = False, grad: bool = True,
) -> Variant:  # fmt: skip
    def prepare() -> Callable[[], Any]:
        given = [_heads(shape, dtype, grad, transposed) for shape in (query, key, key)]
        bias = _bias(mask, query, key, dtype)
        grouped = len(query) == 4 and query[1] != key[1]

        def run() -> Any:
            with sdpa_kernel(backend or list(_BACKENDS)):
                return F.scaled_dot_product_attention(
                    *given, attn_mask=bias, is_causal=mask == "causal", dropout_p=dropout, enable_gqa=grouped
                )

        return run

    flags = f"backend={backend and backend.name} dropout={dropout} transposed={transposed} grad={grad}"
    return f"sdpa {query} {key} {short(dtype)} {mask} {flags}", prepare


_BACKENDS = [b for b in SDPBackend.__members__.values() if b.name not in ("ERROR", "OVERRIDEABLE")]


def _heads(shape: tuple, dtype: torch.dtype, grad: bool, transposed: bool) -> torch.Tensor:
    if not transposed:
        return randn(*shape, dtype=dtype, grad=grad)
    batch, heads, length, head = shape
    return randn(batch, length, heads, head, dtype=dtype, grad=grad).transpose(1, 2)


def _bias(mask: str, query: tuple, key: tuple, dtype: torch.dtype) -> torch.Tensor | None:
    shape = (*query[:-1], key[-2])
    if mask in ("none", "causal"):
        return None
    if mask == "bool":
        return torch.ones(shape, dtype=torch.bool).tril().cuda()
    if mask == "unaligned":
        return randn(*shape[:-1], shape[-1] + 1, dtype=dtype, grad=False)[..., 1:]
    if mask == "broadcast":
        return randn(*(1 for _ in shape[:-2]), *shape[-2:], dtype=dtype, grad=False)
    return randn(*shape, dtype=dtype, grad=mask == "float grad")
