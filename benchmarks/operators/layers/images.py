"""Resampling, pooling and convolutions."""

from collections.abc import Iterator
from itertools import product

import torch
import torch.nn.functional as F

from benchmarks.operators.layers.making import FLOATS, Variant, of, randn, short


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
