"""What surrounds layers, and linear algebra."""

from collections.abc import Callable, Iterator
from itertools import product

import torch
from torch import nn
from torch.utils.checkpoint import checkpoint

from benchmarks.operators.layers.making import Variant, integers, of, randn


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
    yield of(
        "checkpoint", lambda x: checkpoint(torch.nn.functional.gelu, x * 2, use_reentrant=False), lambda: randn(64, 256)
    )
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
