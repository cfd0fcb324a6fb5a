"""Losses."""

from collections.abc import Callable, Iterator
from typing import Any

import torch
import torch.nn.functional as F

from benchmarks.operators.layers.making import FLOATS, Variant, integers, of, randn, short


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
