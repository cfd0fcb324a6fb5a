"""Gathers, scatters, sorts and scans."""

from collections.abc import Iterator
from itertools import product

import torch
import torch.nn.functional as F

from benchmarks.operators.layers.making import FLOATS, Variant, integers, of, randn, short


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
            yield of(f"take_along_dim {count} {flags}",
                     lambda i, w: w.take_along_dim(i[:, None].expand(-1, 64) % 5000, 0),
                     index, table)  # fmt: skip
            yield of(f"index_add {count} {flags}",
                     lambda i, s: torch.zeros_like(s[:1]).expand(5000, -1).index_add(0, i, s),
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
