"""The microbenchmarks: single operators as training calls them, each at several sizes.

`CASES` names a function for each that makes the tensors on `cuda` and returns what to time: a card times it, and the
virtual card says what operators it is of.
"""

from collections.abc import Callable, Iterator
from functools import partial
from itertools import product

import torch
import torch.nn.functional as F

Run = Callable[[], object]
Prepare = Callable[[], Run]

FP32, BF16, FP16 = torch.float32, torch.bfloat16, torch.float16
_NAMES = {FP32: "fp32", BF16: "bf16", FP16: "fp16"}
# Rows, inner size and columns of the products in transformers.
PRODUCTS = (
    (512, 512, 512), (1024, 768, 768), (2048, 768, 768), (4096, 768, 768), (4096, 768, 2304), (4096, 768, 3072),
    (4096, 3072, 768), (768, 4096, 768), (768, 4096, 3072), (4096, 1024, 1024), (4096, 1024, 2816), (8192, 1024, 4096),
    (4096, 2048, 8192), (8192, 4096, 4096), (12608, 768, 3072), (4096, 768, 50257), (4096, 50257, 768),
    (50257, 4096, 768), (4096, 1024, 32000), (32000, 4096, 1024),
)  # fmt: skip
BATCHED = ((96, 512, 64, 512), (96, 512, 512, 64), (192, 128, 64, 128), (384, 197, 64, 197), (96, 1024, 64, 1024))
# Samples, channels in and out, pixels, kernel, stride, groups.
CONVOLUTIONS = (
    (32, 3, 64, 224, 7, 2, 1), (32, 64, 64, 56, 1, 1, 1), (32, 64, 64, 56, 3, 1, 1), (32, 64, 256, 56, 1, 1, 1),
    (32, 128, 128, 28, 3, 1, 1), (32, 512, 128, 28, 1, 1, 1), (32, 256, 256, 14, 3, 1, 1), (32, 256, 1024, 14, 1, 1, 1),
    (32, 512, 512, 7, 3, 1, 1), (32, 2048, 512, 7, 1, 1, 1), (32, 512, 1024, 28, 1, 2, 1), (128, 64, 64, 56, 3, 1, 1),
    (128, 256, 256, 14, 3, 1, 1), (128, 64, 256, 56, 1, 1, 1), (128, 1024, 256, 14, 1, 1, 1),
    (64, 3, 768, 224, 16, 16, 1), (64, 96, 96, 56, 7, 1, 96), (64, 384, 384, 14, 7, 1, 384),
)  # fmt: skip
# Samples, heads, positions, size of a head, causal.
ATTENTIONS = (
    (8, 12, 512, 64, True), (8, 12, 1024, 64, True), (4, 16, 1024, 64, True), (2, 32, 1024, 64, True),
    (2, 16, 4096, 128, True), (64, 12, 197, 64, False), (16, 12, 128, 64, False), (32, 12, 256, 64, False),
)  # fmt: skip
# Elements from what fits in no time to what the L2 cache cannot hold.
SIZES = (2**14, 2**18, 2**20, 3 * 2**20, 2**23, 2**24, 2**25, 2**27)
# Rows and columns.
ROWS = ((512, 768), (2048, 768), (4096, 768), (4096, 3072), (12608, 768), (16384, 1024), (4096, 4096))
IMAGES = ((32, 64, 112), (32, 256, 56), (32, 512, 28), (32, 2048, 7), (128, 64, 56), (128, 256, 56), (128, 1024, 14))


def _random(*shape: int, dtype: torch.dtype = FP32, grad: bool = False) -> torch.Tensor:
    return torch.randn(shape, device="cuda", dtype=dtype).requires_grad_(grad)


def _backward_of(make: Callable[[], tuple[torch.Tensor, list[torch.Tensor]]]) -> Run:
    """The backward pass of what `make` returns: an output and the inputs."""
    output, inputs = make()
    gradient = torch.randn_like(output)
    return lambda: torch.autograd.grad(output, inputs, gradient, retain_graph=True)


def _product(rows: int, inner: int, columns: int, dtype: torch.dtype, layout: str, tf32: bool) -> Run:
    a = _random(rows, inner, dtype=dtype) if layout[0] == "n" else _random(inner, rows, dtype=dtype).t()
    b = _random(inner, columns, dtype=dtype) if layout[1] == "n" else _random(columns, inner, dtype=dtype).t()

    def run() -> None:
        torch.backends.cuda.matmul.fp32_precision = "tf32" if tf32 else "ieee"
        torch.mm(a, b)

    return run


def _batched(batch: int, rows: int, inner: int, columns: int, dtype: torch.dtype) -> Run:
    a, b = _random(batch, rows, inner, dtype=dtype), _random(batch, columns, inner, dtype=dtype).transpose(1, 2)
    return lambda: torch.bmm(a, b)


def _convolved(
    samples: int, channels: int, filters: int, pixels: int, kernel: int, stride: int, groups: int,
    dtype: torch.dtype, last: bool,
) -> tuple[torch.Tensor, list[torch.Tensor]]:  # fmt: skip
    layout = torch.channels_last if last else torch.contiguous_format
    images = _random(samples, channels, pixels, pixels, dtype=dtype).to(memory_format=layout).requires_grad_()
    weight = _random(filters, channels // groups, kernel, kernel, dtype=dtype).to(memory_format=layout)
    weight.requires_grad_()
    padding = 0 if kernel == stride else kernel // 2
    return F.conv2d(images, weight, None, stride, padding, 1, groups), [images, weight]


def _convolution(*problem: object) -> Run:
    *sizes, dtype, last = problem
    _, (images, weight) = _convolved(*sizes, dtype, last)  # type: ignore[arg-type]
    kernel, stride, groups = sizes[4:]
    padding = 0 if kernel == stride else kernel // 2  # type: ignore[operator]
    images, weight = images.detach(), weight.detach()
    return lambda: F.conv2d(images, weight, None, stride, padding, 1, groups)  # type: ignore[arg-type]


def _attention(samples: int, heads: int, positions: int, size: int, causal: bool, dtype: torch.dtype) -> Run:
    query, key, value = (_random(samples, heads, positions, size, dtype=dtype) for _ in range(3))
    # Only while autograd records are the sums for a backward written.
    query.requires_grad_()
    return lambda: F.scaled_dot_product_attention(query, key, value, is_causal=causal)


def _attended(
    samples: int, heads: int, positions: int, size: int, causal: bool, dtype: torch.dtype
) -> tuple[torch.Tensor, list[torch.Tensor]]:
    inputs = [_random(samples, heads, positions, size, dtype=dtype, grad=True) for _ in range(3)]
    return F.scaled_dot_product_attention(*inputs, is_causal=causal), inputs


def _pointwise(what: str, size: int, dtype: torch.dtype) -> Run:
    x, y = _random(size, dtype=dtype), _random(size, dtype=dtype)
    return {
        "add": lambda: x + y,
        "mul_scalar": lambda: x * 0.5,
        "add_": lambda: x.add_(y),
        "gelu": lambda: F.gelu(x),
        "tanh": lambda: torch.tanh(x),
        "zero_": lambda: x.zero_(),
        "copy_": lambda: x.copy_(y),
        "to_other": lambda: x.to(BF16 if dtype == FP32 else FP32),
        "dropout": lambda: torch.native_dropout(x, 0.1, True),
    }[what]


def _by_rows(what: str, rows: int, columns: int, dtype: torch.dtype) -> Run:
    x = _random(rows, columns, dtype=dtype)
    weight, bias = _random(columns, dtype=dtype), _random(columns, dtype=dtype)
    return {
        "sum_rows": lambda: x.sum(0),
        "sum_all": lambda: x.sum(),
        "mean_columns": lambda: x.mean(-1, keepdim=True),
        "softmax": lambda: torch.softmax(x, -1),
        "log_softmax": lambda: torch.log_softmax(x, -1),
        "layer_norm": lambda: F.layer_norm(x, (columns,), weight, bias),
        "add_bias": lambda: x + bias,
        "norm": lambda: torch.linalg.vector_norm(x),
        "cat": lambda: torch.cat([x, x]),
        "transposed": lambda: x.t().contiguous(),
        "heads": lambda: x.view(-1, 64, columns // 64, 64).transpose(1, 2).contiguous(),
    }[what]


def _layer_normed(rows: int, columns: int, dtype: torch.dtype) -> tuple[torch.Tensor, list[torch.Tensor]]:
    x, weight, bias = (_random(*shape, dtype=dtype, grad=True) for shape in ((rows, columns), (columns,), (columns,)))
    return F.layer_norm(x, (columns,), weight, bias), [x, weight, bias]


def _softmaxed(rows: int, columns: int, dtype: torch.dtype) -> tuple[torch.Tensor, list[torch.Tensor]]:
    x = _random(rows, columns, dtype=dtype, grad=True)
    return torch.log_softmax(x, -1), [x]


def _normed(
    samples: int, channels: int, pixels: int, dtype: torch.dtype, last: bool
) -> tuple[torch.Tensor, list[torch.Tensor]]:
    layout = torch.channels_last if last else torch.contiguous_format
    x = _random(samples, channels, pixels, pixels, dtype=dtype).to(memory_format=layout).requires_grad_()
    weight, bias = _random(channels, grad=True), _random(channels, grad=True)
    mean, variance = _random(channels), _random(channels)
    return F.batch_norm(x, mean, variance, weight, bias, training=True), [x, weight, bias]


def _norm(samples: int, channels: int, pixels: int, dtype: torch.dtype, last: bool) -> Run:
    _, (x, weight, bias) = _normed(samples, channels, pixels, dtype, last)
    mean, variance = _random(channels), _random(channels)
    x = x.detach()
    return lambda: F.batch_norm(x, mean, variance, weight, bias, training=True)


def _embedding(vocabulary: int, size: int, positions: int) -> Run:
    table, ids = _random(vocabulary, size), torch.randint(0, vocabulary, (8, positions), device="cuda")
    return lambda: F.embedding(ids, table)


def _embedded(vocabulary: int, size: int, positions: int) -> tuple[torch.Tensor, list[torch.Tensor]]:
    table, ids = _random(vocabulary, size, grad=True), torch.randint(0, vocabulary, (8, positions), device="cuda")
    return F.embedding(ids, table), [table]


def _lists(what: str, count: int, size: int) -> Run:
    a, b, c, d = ([torch.rand(size, device="cuda") for _ in range(count)] for _ in range(4))
    steps = [torch.ones((), device="cuda") for _ in range(count)]
    options = {"lr": 1e-3, "beta1": 0.9, "beta2": 0.999, "weight_decay": 0.01, "eps": 1e-8}
    return {
        "add_scalar": lambda: torch._foreach_add_(a, 1.0),
        "mul_": lambda: torch._foreach_mul_(a, 0.9),
        "lerp_": lambda: torch._foreach_lerp_(a, b, 0.1),
        "addcmul_": lambda: torch._foreach_addcmul_(a, b, c, 0.1),
        "sqrt": lambda: torch._foreach_sqrt(a),
        "addcdiv_": lambda: torch._foreach_addcdiv_(a, b, c, [0.1] * count),
        "norm": lambda: torch._foreach_norm(a),
        "fused_adamw_": lambda: torch._fused_adamw_(a, b, c, d, [], steps, amsgrad=False, maximize=False, **options),
    }[what]


def _pool(samples: int, channels: int, pixels: int, dtype: torch.dtype) -> Run:
    x = _random(samples, channels, pixels, pixels, dtype=dtype)
    return lambda: F.max_pool2d(x, 3, 2, 1)


def _all() -> Iterator[tuple[str, Prepare]]:
    for sizes, (dtype, tf32) in product(PRODUCTS, ((FP32, False), (FP32, True), (BF16, False))):
        layouts = ("nt", "nn") if sizes[0] < 50257 else ("tn",)
        for layout in ("tn",) if sizes[0] in (768, 32000) else layouts:
            name = "tf32" if tf32 else _NAMES[dtype]
            yield f"matmul {name} {layout} {sizes}", partial(_product, *sizes, dtype, layout, tf32)
    for sizes, dtype in product(BATCHED, (FP32, BF16)):
        yield f"bmm {_NAMES[dtype]} {sizes}", partial(_batched, *sizes, dtype)
    for sizes, (dtype, last) in product(CONVOLUTIONS, ((FP32, False), (FP16, False), (BF16, False), (BF16, True))):
        name = f"{_NAMES[dtype]}{' last' if last else ''} {sizes}"
        yield f"conv {name}", partial(_convolution, *sizes, dtype, last)
        yield f"conv_backward {name}", partial(_backward_of, partial(_convolved, *sizes, dtype, last))
    for problem, dtype in product(ATTENTIONS, (FP32, BF16)):
        yield f"attention {_NAMES[dtype]} {problem}", partial(_attention, *problem, dtype)
        yield (
            f"attention_backward {_NAMES[dtype]} {problem}",
            partial(_backward_of, partial(_attended, *problem, dtype)),
        )
    kinds = ("add", "mul_scalar", "add_", "gelu", "tanh", "zero_", "copy_", "to_other", "dropout")
    for what, size, dtype in product(kinds, SIZES, (FP32, BF16)):
        yield f"{what} {_NAMES[dtype]} {size}", partial(_pointwise, what, size, dtype)
    kinds = (
        "sum_rows",
        "sum_all",
        "mean_columns",
        "softmax",
        "layer_norm",
        "add_bias",
        "norm",
        "cat",
        "transposed",
        "heads",
    )
    for what, sizes, dtype in product(kinds, ROWS, (FP32, BF16)):
        yield f"{what} {_NAMES[dtype]} {sizes}", partial(_by_rows, what, *sizes, dtype)
    for sizes, dtype in product(ROWS, (FP32, BF16)):
        yield (
            f"layer_norm_backward {_NAMES[dtype]} {sizes}",
            partial(_backward_of, partial(_layer_normed, *sizes, dtype)),
        )
    for sizes, dtype in product((*ROWS, (4096, 50257), (4096, 32000)), (FP32, BF16)):
        yield f"log_softmax {_NAMES[dtype]} {sizes}", partial(_by_rows, "log_softmax", *sizes, dtype)
        yield f"log_softmax_backward {_NAMES[dtype]} {sizes}", partial(_backward_of, partial(_softmaxed, *sizes, dtype))
    for sizes, (dtype, last) in product(IMAGES, ((FP32, False), (FP16, False), (BF16, True))):
        name = f"{_NAMES[dtype]}{' last' if last else ''} {sizes}"
        yield f"batch_norm {name}", partial(_norm, *sizes, dtype, last)
        yield f"batch_norm_backward {name}", partial(_backward_of, partial(_normed, *sizes, dtype, last))
    for sizes in ((50257, 768, 512), (30522, 768, 128), (32000, 1024, 512)):
        yield f"embedding {sizes}", partial(_embedding, *sizes)
        yield f"embedding_backward {sizes}", partial(_backward_of, partial(_embedded, *sizes))
    kinds = ("add_scalar", "mul_", "lerp_", "addcmul_", "sqrt", "addcdiv_", "norm", "fused_adamw_")
    for what, (count, size) in product(kinds, ((160, 1), (160, 1000), (60, 2**20), (148, 840_000))):
        yield f"foreach {what} {count} {size}", partial(_lists, what, count, size)
    for dtype in (FP32, FP16):
        yield f"max_pool {_NAMES[dtype]}", partial(_pool, 64, 64, 112, dtype)


CASES: dict[str, Prepare] = dict(_all())
