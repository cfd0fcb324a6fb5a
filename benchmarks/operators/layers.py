"""Cases in the sizes of a training run: layers, attention, norms, losses, indexing and reordering."""

from collections.abc import Callable, Iterator
from itertools import product
from typing import Any

import torch
import torch.nn.functional as F
from torch import nn
from torch.nn.attention import SDPBackend, sdpa_kernel

Variant = tuple[str, Callable[[], Callable[[], Any]]]

HALF = (torch.float16, torch.bfloat16)
FLOATS = (torch.float32, *HALF)
BATCH_FIRST = {"batch_first": True}


def randn(*shape: int, dtype: torch.dtype = torch.float32, grad: bool = True, **layout: Any) -> torch.Tensor:
    """Noise on the card."""
    return torch.randn(*shape, device="cuda", dtype=dtype).to(**layout).requires_grad_(grad)


def integers(high: int, *shape: int) -> torch.Tensor:
    """Integers on the card whose values the host knew."""
    return torch.randint(0, high, shape, generator=torch.Generator().manual_seed(0)).cuda()


def of(signature: str, function: Callable, *make: Callable[[], Any]) -> Variant:
    """A variant that calls `function` with what each of `make` returns."""

    def prepare() -> Callable[[], Any]:
        given = [each() for each in make]
        return lambda: function(*given)

    return signature, prepare


def in_module(signature: str, module: Callable[[], nn.Module], *make: Callable[[], Any], dtype=torch.float32,
              training: bool = True, **kwargs: Any) -> Variant:  # fmt: skip
    """A variant that calls a module on the card."""

    def prepare() -> Callable[[], Any]:
        torch.manual_seed(0)
        on_card = module().to("cuda", dtype).train(training)
        given = [each() for each in make]
        return lambda: on_card(*given, **kwargs)

    return signature, prepare


def short(dtype: torch.dtype) -> str:
    """`float16` for torch.float16."""
    return str(dtype)[6:]


def recurrent() -> Iterator[Variant]:
    """LSTM, GRU and plain recurrent networks, whose reserve and workspace only cuDNN knows."""
    shapes = ((64, 128, 256, 512), (16, 50, 80, 200), (8, 33, 300, 1024), (128, 20, 64, 64), (1, 100, 40, 72))
    options: tuple[dict, ...] = (
        {}, {"bidirectional": True}, {"num_layers": 2}, {"num_layers": 3, "dropout": 0.1},
        {"num_layers": 2, "bidirectional": True, "dropout": 0.3}, {"num_layers": 4}, {"bias": False},
    )  # fmt: skip
    for kind, option, shape, dtype in product((nn.LSTM, nn.GRU, nn.RNN), options, shapes, FLOATS):
        if kind is nn.RNN and dtype is torch.bfloat16 or shape[0] == 1 and len(option) > 1:
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


def norms() -> Iterator[Variant]:
    """Normalisations, their statistics and what their backward takes."""
    for dtype, affine in product(FLOATS, (True, False)):
        flags = f"{short(dtype)} affine={affine}"
        for rows, width in ((64, 96), (8192, 768), (8192, 100), (100_000, 96), (70_000, 512), (512, 12_288)):
            yield in_module(
                f"layer_norm {rows}x{width} {flags}", lambda: nn.LayerNorm(width, elementwise_affine=affine),
                lambda: randn(rows, width, dtype=dtype), dtype=dtype,
            )  # fmt: skip
            yield in_module(
                f"rms_norm {rows}x{width} {flags}", lambda: nn.RMSNorm(width, elementwise_affine=affine),
                lambda: randn(rows, width, dtype=dtype), dtype=dtype,
            )  # fmt: skip
        for shape, groups in (((16, 128, 32, 32), 32), ((4, 64, 4096), 8), ((2, 32, 16, 16, 16), 4), ((64, 256), 16)):
            for layout in (torch.contiguous_format, torch.channels_last):
                if layout is torch.channels_last and len(shape) != 4:
                    continue
                yield in_module(
                    f"group_norm {shape} {groups} {layout} {flags}",
                    lambda: nn.GroupNorm(groups, shape[1], affine=affine),
                    lambda: randn(*shape, dtype=dtype, memory_format=layout), dtype=dtype,
                )  # fmt: skip
    yield from _batch_norms()


def _batch_norms() -> Iterator[Variant]:
    kinds = (
        (nn.BatchNorm2d, (32, 64, 56, 56)), (nn.BatchNorm1d, (512, 256)), (nn.BatchNorm1d, (32, 128, 400)),
        (nn.BatchNorm3d, (4, 32, 16, 16, 16)), (nn.InstanceNorm2d, (8, 32, 64, 64)), (nn.BatchNorm2d, (2, 2048, 7, 7)),
    )  # fmt: skip
    for (kind, shape), dtype, training, weights in product(kinds, FLOATS, (True, False), (None, torch.float32)):
        for layout in (torch.contiguous_format, torch.channels_last):
            if layout is torch.channels_last and len(shape) != 4:
                continue
            yield in_module(
                f"{kind.__name__} {shape} {layout} {short(dtype)} weights={weights} training={training}",
                lambda: kind(shape[1]), lambda: randn(*shape, dtype=dtype, memory_format=layout),
                dtype=weights or dtype, training=training,
            )  # fmt: skip


def indexing() -> Iterator[Variant]:
    """Gathers and scatters, distances, sorts and scans, as point clouds and graphs use them."""
    for dtype in FLOATS:
        flags = short(dtype)
        for count in (1000, 3000, 4000, 20_000, 200_000):
            index = lambda count=count: integers(5000, count)
            table = lambda: randn(5000, 64, dtype=dtype)
            yield of(f"embedding {count} {flags}", lambda i, w: F.embedding(i, w), index, table)
            yield of(f"embedding padding {count} {flags}", lambda i, w: F.embedding(i, w, padding_idx=0), index, table)
            yield of(f"index {count} {flags}", lambda i, w: w[i], index, table)
            yield of(f"index_select {count} {flags}", lambda i, w: w.index_select(0, i), index, table)
            yield of(f"take_along_dim {count} {flags}", lambda i, w: w.take_along_dim(i[:, None].expand(-1, 64) % 5000, 0),
                     index, table)  # fmt: skip
            yield of(f"index_add {count} {flags}", lambda i, s: torch.zeros_like(s[:1]).expand(5000, -1).index_add(0, i, s),
                     index, lambda: randn(count, 64, dtype=dtype))  # fmt: skip
            yield of(f"scatter_add {count} {flags}",
                     lambda i, s: s.new_zeros(5000, 64).scatter_add(0, i[:, None].expand(-1, 64), s),
                     index, lambda: randn(count, 64, dtype=dtype))  # fmt: skip
            yield of(f"scatter_reduce {count} {flags}",
                     lambda i, s: s.new_zeros(5000, 64).scatter_reduce(0, i[:, None].expand(-1, 64), s, "mean"),
                     index, lambda: randn(count, 64, dtype=dtype))  # fmt: skip
            yield of(f"index_put {count} {flags}",
                     lambda i, s: s.new_zeros(5000, 64).index_put((i,), s, accumulate=True),
                     index, lambda: randn(count, 64, dtype=dtype))  # fmt: skip
            yield of(f"embedding_bag {count} {flags}", lambda i, w: F.embedding_bag(i.view(-1, 10), w), index, table)
            yield of(f"embedding_bag max {count} {flags}",
                     lambda i, w: F.embedding_bag(i.view(-1, 10), w, mode="max"), index, table)  # fmt: skip
        points = lambda: randn(4, 1024, 64, dtype=dtype)
        rows = lambda: integers(1024, 4, 500)
        yield of(f"gather {flags}", lambda p, i: p.gather(1, i[..., None].expand(-1, -1, 64)), points, rows)
        yield of(f"batch index {flags}", lambda p, i: p[torch.arange(4, device="cuda")[:, None], i], points, rows)
        yield of(f"bool index {flags}", lambda p, i: p[(i > 500)[:, :1].expand(-1, 1024)], points, rows)
        yield of(f"masked_fill {flags}", lambda p, i: p.masked_fill((i > 500)[:, :1, None], 0.0), points, rows)
        yield of(f"topk {flags}", lambda p: p.topk(16, 1)[0], points)
        yield of(f"topk last {flags}", lambda p: p.topk(16)[0], points)
        yield of(f"sort {flags}", lambda p: p.sort(1)[0], points)
        yield of(f"argsort {flags}", lambda p: p.argsort(-1), points)
        yield of(f"sort long {flags}", lambda p: p.sort()[0], lambda: randn(300_000, dtype=dtype))
        yield of(f"sort rows {flags}", lambda p: p.sort()[0], lambda: randn(64, 5000, dtype=dtype))
        yield of(f"sort many rows {flags}", lambda p: p.sort()[0], lambda: randn(300, 5000, dtype=dtype))
        yield of(f"topk long {flags}", lambda p: p.topk(100)[0], lambda: randn(1_000_000, dtype=dtype))
        yield of(f"topk wide {flags}", lambda p: p.topk(50)[0], lambda: randn(16, 50_257, dtype=dtype))
        for dim in (0, 1, 2):
            yield of(f"cumsum {dim} {flags}", lambda p, dim=dim: p.cumsum(dim), points)
            yield of(f"cumprod {dim} {flags}", lambda p, dim=dim: p.cumprod(dim), points)
            yield of(f"max {dim} {flags}", lambda p, dim=dim: p.max(dim)[0], points)
            yield of(f"median {dim} {flags}", lambda p, dim=dim: p.median(dim)[0], points)
            yield of(f"std {dim} {flags}", lambda p, dim=dim: p.std(dim), points)
            yield of(f"logsumexp {dim} {flags}", lambda p, dim=dim: p.logsumexp(dim), points)
            yield of(f"softmax {dim} {flags}", lambda p, dim=dim: p.softmax(dim), points)
    yield from _distances()
    yield from _integers()


def _distances() -> Iterator[Variant]:
    for (left, right, width), p in product(((1024, 1024, 3), (1024, 128, 64), (20, 30, 3), (2000, 20, 3)), (1.0, 2.0)):
        points = lambda: randn(4, left, width)
        centers = lambda: randn(4, right, width)
        yield of(f"cdist {left}x{right}x{width} p={p}", lambda a, b: torch.cdist(a, b, p=p), points, centers)
        for mode in ("use_mm_for_euclid_dist", "donot_use_mm_for_euclid_dist"):
            yield of(f"cdist {left}x{right}x{width} p={p} {mode}",
                     lambda a, b: torch.cdist(a, b, p=p, compute_mode=mode), points, centers)  # fmt: skip
    yield of("pdist", lambda a: F.pdist(a), lambda: randn(500, 64))


def _integers() -> Iterator[Variant]:
    for count in (1000, 100_000):
        index = lambda: integers(5000, count)
        for name in ("unique", "unique_consecutive", "sort", "bincount", "cumsum", "argsort", "nonzero"):
            arguments = (0,) if name == "cumsum" else ()
            yield of(f"{name} {count}", lambda i: getattr(i, name)(*arguments), index)
        yield of(f"one_hot {count}", lambda i: F.one_hot(i, 5000), index)
        yield of(f"randperm {count}", lambda: torch.randperm(count, device="cuda"))
        yield of(f"multinomial {count}", lambda: torch.multinomial(torch.ones(8, count, device="cuda"), 5))
        yield of(f"repeat_interleave {count}", lambda i: torch.repeat_interleave(i % 3), index)
        yield of(f"searchsorted {count}", lambda i: torch.searchsorted(i.sort()[0], i), index)
        yield of(f"isin {count}", lambda i: torch.isin(i, i[:50]), index)
        yield of(f"masked_select {count}", lambda i: i[i > 2500], index)


def images() -> Iterator[Variant]:
    """Resampling and pooling."""
    for dtype, layout in product(FLOATS, (torch.contiguous_format, torch.channels_last)):
        image = lambda: randn(4, 32, 48, 48, dtype=dtype, memory_format=layout)
        flags = f"{short(dtype)} {layout}"
        for mode in ("nearest", "bilinear", "bicubic", "area", "nearest-exact"):
            yield of(f"interpolate {mode} {flags}", lambda x: F.interpolate(x, scale_factor=2, mode=mode), image)
        yield of(f"interpolate antialias {flags}",
                 lambda x: F.interpolate(x, size=(20, 20), mode="bilinear", antialias=True), image)  # fmt: skip
        yield of(f"max_pool2d {flags}", lambda x: F.max_pool2d(x, 3, 2, 1), image)
        yield of(f"avg_pool2d {flags}", lambda x: F.avg_pool2d(x, 3, 2, 1), image)
        yield of(f"adaptive_avg_pool2d {flags}", lambda x: F.adaptive_avg_pool2d(x, 1), image)
        yield of(f"adaptive_avg_pool2d 7 {flags}", lambda x: F.adaptive_avg_pool2d(x, 7), image)
        yield of(f"adaptive_max_pool2d {flags}", lambda x: F.adaptive_max_pool2d(x, 7), image)
        yield of(f"pixel_shuffle {flags}", lambda x: F.pixel_shuffle(x, 4), image)
        yield of(f"pixel_unshuffle {flags}", lambda x: F.pixel_unshuffle(x, 4), image)
        yield of(f"unfold {flags}", lambda x: F.unfold(x, 3), image)
        yield of(f"pad reflect {flags}", lambda x: F.pad(x, (1, 1, 1, 1), mode="reflect"), image)
        yield of(f"grid_sample {flags}", lambda x, g: F.grid_sample(x, g, align_corners=False), image,
                 lambda: randn(4, 40, 40, 2, dtype=dtype))  # fmt: skip
        yield of(f"affine_grid {flags}", lambda t: F.affine_grid(t, [4, 32, 48, 48], align_corners=False),
                 lambda: randn(4, 2, 3, dtype=dtype))  # fmt: skip
        yield of(f"dropout {flags}", lambda x: F.dropout(x, 0.1), image)
        yield of(f"dropout2d {flags}", lambda x: F.dropout2d(x, 0.1), image)
        yield of(f"alpha_dropout {flags}", lambda x: F.alpha_dropout(x, 0.1, training=True), image)
        yield of(f"rrelu {flags}", lambda x: F.rrelu(x, training=True), image)
        yield of(f"prelu {flags}", lambda x, w: F.prelu(x, w), image, lambda: randn(32, dtype=dtype))
        yield of(f"glu {flags}", lambda x: F.glu(x, 1), image)
    volume = lambda: randn(2, 8, 24, 24, 24)
    yield of("interpolate trilinear", lambda x: F.interpolate(x, scale_factor=2, mode="trilinear"), volume)
    yield of("max_pool3d", lambda x: F.max_pool3d(x, 2), volume)
    yield of("interpolate linear", lambda x: F.interpolate(x, scale_factor=2, mode="linear"), lambda: randn(4, 32, 500))


def convolutions() -> Iterator[Variant]:
    """Convolutions by kind, type and layout."""
    kinds = (
        (nn.Conv2d, (3, 64, 7, 2, 3), {}, (16, 112, 112)), (nn.Conv2d, (64, 64, 3, 1, 1), {}, (16, 56, 56)),
        (nn.Conv2d, (64, 256, 1), {}, (16, 56, 56)), (nn.Conv2d, (96, 96, 7, 1, 3), {"groups": 96}, (16, 28, 28)),
        (nn.Conv2d, (128, 128, 3, 1, 1), {"groups": 32}, (16, 28, 28)), (nn.Conv1d, (64, 128, 5, 2), {}, (16, 1000)),
        (nn.Conv3d, (16, 32, 3, 1, 1), {}, (2, 24, 24, 24)), (nn.ConvTranspose2d, (64, 32, 4, 2, 1), {}, (8, 28, 28)),
        (nn.ConvTranspose1d, (64, 32, 4, 2, 1), {}, (8, 500)), (nn.Conv1d, (256, 256, 3, 1, 1), {"groups": 256}, (8, 200)),
        (nn.ConvTranspose3d, (16, 8, 2, 2), {}, (2, 12, 12, 12)), (nn.Conv2d, (32, 32, 3), {"dilation": 2}, (8, 64, 64)),
    )  # fmt: skip
    for (kind, sizes, option, (batch, *space)), dtype in product(kinds, FLOATS):
        for layout in (torch.contiguous_format, torch.channels_last):
            if layout is torch.channels_last and kind not in (nn.Conv2d, nn.ConvTranspose2d):
                continue
            yield in_module(
                f"{kind.__name__} {sizes} {option} {batch}x{space} {short(dtype)} {layout}",
                lambda: kind(*sizes, **option).to(memory_format=layout),
                lambda: randn(batch, sizes[0], *space, dtype=dtype, memory_format=layout), dtype=dtype,
            )  # fmt: skip


def losses() -> Iterator[Variant]:
    """Losses with targets of every kind."""
    for dtype in FLOATS:
        logits = lambda: randn(2048, 5000, dtype=dtype)
        targets = lambda: integers(5000, 2048)
        flags = short(dtype)
        for option in ({}, {"label_smoothing": 0.1}, {"ignore_index": 3}, {"reduction": "none"}, {"reduction": "sum"}):
            yield of(
                f"cross_entropy {option} {flags}", lambda x, y, o=option: F.cross_entropy(x, y, **o), logits, targets
            )
        yield of(f"cross_entropy weights {flags}", lambda x, y, w: F.cross_entropy(x, y, w), logits, targets,
                 lambda: randn(5000, dtype=dtype, grad=False))  # fmt: skip
        yield of(f"cross_entropy soft {flags}", lambda x, y: F.cross_entropy(x, y.softmax(-1)), logits,
                 lambda: randn(2048, 5000, dtype=dtype, grad=False))  # fmt: skip
        yield of(f"cross_entropy pixels {flags}", lambda x, y: F.cross_entropy(x, y),
                 lambda: randn(4, 21, 128, 128, dtype=dtype), lambda: integers(21, 4, 128, 128))  # fmt: skip
        pair = (lambda: randn(2048, 500, dtype=dtype), lambda: randn(2048, 500, dtype=dtype, grad=False))
        for loss in (F.mse_loss, F.l1_loss, F.smooth_l1_loss, F.huber_loss, F.kl_div, F.poisson_nll_loss,
                     F.binary_cross_entropy_with_logits, F.soft_margin_loss, F.cosine_similarity):  # fmt: skip
            yield of(f"{loss.__name__} {flags}", loss, *pair)
        yield of(f"bce {flags}", lambda x, y: F.binary_cross_entropy(x.sigmoid(), y.sigmoid()), *pair)
        yield of(f"multilabel {flags}", lambda x, y: F.multilabel_soft_margin_loss(x, y.sigmoid()), *pair)
        yield of(f"triplet {flags}", lambda x, y: F.triplet_margin_loss(x, y, y.flip(0)), *pair)
        yield of(
            f"multi_margin {flags}", lambda x, y: F.multi_margin_loss(x, y), *pair[:1], lambda: integers(500, 2048)
        )
    for length, blank in ((30, 0), (30, 5), (5, 0)):
        yield of(
            f"ctc {length} {blank}", _ctc(blank), lambda: randn(100, 16, 60),
            lambda: integers(50, 16, length) + 6, lambda: torch.full((16,), 100), lambda: torch.full((16,), length),
        )  # fmt: skip


def _ctc(blank: int) -> Callable:
    def loss(logits: Any, targets: Any, input_lengths: Any, target_lengths: Any) -> Any:
        return F.ctc_loss(logits.log_softmax(-1), targets, input_lengths, target_lengths, blank=blank)

    return loss


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
        yield of(f"bilinear {flags}", F.bilinear, lambda: randn(256, 32, dtype=dtype), lambda: randn(256, 48, dtype=dtype),
                 lambda: randn(64, 32, 48, dtype=dtype))  # fmt: skip
        yield of(f"addmv {flags}", torch.addmv, lambda: randn(128, dtype=dtype), lambda: randn(128, 64, dtype=dtype),
                 lambda: randn(64, dtype=dtype))  # fmt: skip
        yield of(f"tensordot {flags}", lambda a, b: torch.tensordot(a, b, ([1, 2], [1, 2])), tokens, tokens)
    yield of("stft", lambda x: torch.stft(x, 512, window=torch.hann_window(512, device="cuda"), return_complex=True).abs(),
             lambda: randn(4, 16_000))  # fmt: skip
    yield of("rfft2", lambda x: torch.fft.irfft2(torch.fft.rfft2(x)), lambda: randn(8, 32, 64, 64))


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


def training() -> Iterator[Variant]:
    """What surrounds layers: gradient accumulation, clipping, scaling, tied and expanded weights."""
    yield of("tied", lambda w, x: (x @ w) @ w.t(), lambda: randn(256, 256), lambda: randn(64, 256, grad=False))
    yield of("expanded", lambda b, x: x + b.expand(64, 256), lambda: randn(256), lambda: randn(64, 256))
    yield of("transposed", lambda w, x: x @ w.t(), lambda: randn(256, 128), lambda: randn(64, 128))
    yield of("in place", lambda x: (x * 2).mul_(3).add_(1).relu_(), lambda: randn(64, 256))
    yield of("slices", lambda x: torch.cat([x[:, :100], x[:, 100:] * 2], 1), lambda: randn(64, 256))
    yield of("chunks", lambda x: sum(c * c for c in x.chunk(3, -1)), lambda: randn(64, 300))
    yield of("unbind", lambda x: torch.stack([c * c for c in x.unbind(1)]), lambda: randn(64, 30))
    yield of("where", lambda x: torch.where(x > 0, x, x.exp()), lambda: randn(64, 256))
    yield of("checkpoint", lambda x: torch.utils.checkpoint.checkpoint(torch.nn.functional.gelu, x * 2, use_reentrant=False),
             lambda: randn(64, 256))  # fmt: skip
    yield of("scaler", _scaled, lambda: nn.Linear(256, 256).cuda(), lambda: randn(64, 256, grad=False))
    yield of(
        "sparse embedding", _sparse, lambda: nn.Embedding(5000, 64, sparse=True).cuda(), lambda: integers(5000, 300)
    )


def _scaled(layer: nn.Module, given: torch.Tensor) -> None:
    optimizer = torch.optim.SGD(layer.parameters(), 0.1)
    scaler = torch.amp.GradScaler("cuda")
    for _ in range(2):
        with torch.autocast("cuda", torch.float16):
            loss = layer(given).sum()
        scaler.scale(loss).backward()
        scaler.unscale_(optimizer)
        nn.utils.clip_grad_norm_(layer.parameters(), 1.0)
        scaler.step(optimizer)
        scaler.update()
        optimizer.zero_grad()


def _sparse(layer: nn.Module, given: torch.Tensor) -> None:
    optimizer = torch.optim.SparseAdam(layer.parameters())
    for _ in range(2):
        layer(given).sum().backward()
        optimizer.step()
        optimizer.zero_grad()


def linear_algebra() -> Iterator[Variant]:
    """Decompositions, whose workspaces only cuSOLVER knows."""
    functions: dict[str, Callable] = {
        "inv": torch.linalg.inv, "qr": torch.linalg.qr, "svd": torch.linalg.svd, "det": torch.linalg.det,
        "cholesky": lambda m: torch.linalg.cholesky(m @ m.mT + torch.eye(m.shape[-1], device="cuda") * 100),
        "solve": lambda m: torch.linalg.solve(m, m), "pinv": torch.linalg.pinv, "slogdet": torch.linalg.slogdet,
        "matrix_exp": torch.linalg.matrix_exp, "lu": torch.linalg.lu, "lstsq": lambda m: torch.linalg.lstsq(m, m)[0],
        "solve_triangular": lambda m: torch.linalg.solve_triangular(m.tril(), m, upper=False),
        "eigvalsh": lambda m: torch.linalg.eigvalsh(m + m.mT), "eigh": lambda m: torch.linalg.eigh(m + m.mT),
        "svdvals": torch.linalg.svdvals, "matrix_power": lambda m: torch.linalg.matrix_power(m, 3),
    }  # fmt: skip
    sizes = ((100, 4), (64, 16), (8, 64), (1, 300), (4, 513))
    for (name, function), (batch, n) in product(functions.items(), sizes):
        yield of(f"{name} {batch}x{n}", function, lambda: randn(batch, n, n) + torch.eye(n, device="cuda"))


LAYERS: dict[str, Callable[[], Iterator[Variant]]] = {
    function.__name__: function
    for function in (
        recurrent, cells, transformers, attention, norms, indexing, images, convolutions, losses, products,
        reductions, training, linear_algebra,
    )
}  # fmt: skip
