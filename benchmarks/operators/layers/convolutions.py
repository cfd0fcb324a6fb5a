"""Convolutions by kind, type and layout."""

from collections.abc import Iterator, Sequence
from itertools import product

import torch
from torch import nn

from benchmarks.operators.layers.making import FLOATS, Variant, in_module, randn, short


def convolutions() -> Iterator[Variant]:
    """Convolutions by kind, type and layout."""
    kinds = (
        (nn.Conv2d, (3, 64, 7, 2, 3), {}, (16, 112, 112)), (nn.Conv2d, (64, 64, 3, 1, 1), {}, (16, 56, 56)),
        (nn.Conv2d, (64, 256, 1), {}, (16, 56, 56)), (nn.Conv2d, (96, 96, 7, 1, 3), {"groups": 96}, (16, 28, 28)),
        (nn.Conv2d, (128, 128, 3, 1, 1), {"groups": 32}, (16, 28, 28)), (nn.Conv1d, (64, 128, 5, 2), {}, (16, 1000)),
        (nn.Conv3d, (16, 32, 3, 1, 1), {}, (2, 24, 24, 24)), (nn.ConvTranspose2d, (64, 32, 4, 2, 1), {}, (8, 28, 28)),
        (nn.ConvTranspose1d, (64, 32, 4, 2, 1), {}, (8, 500)),
        (nn.Conv1d, (256, 256, 3, 1, 1), {"groups": 256}, (8, 200)),
        (nn.ConvTranspose3d, (16, 8, 2, 2), {}, (2, 12, 12, 12)),
        (nn.Conv2d, (32, 32, 3), {"dilation": 2}, (8, 64, 64)),
    )  # fmt: skip
    return _in_every_type(kinds)


def network_convolutions() -> Iterator[Variant]:
    """The convolutions of residual, patch-embedding, speech, diffusion, segmentation and volume networks."""
    shapes = (
        (nn.Conv2d, (256, 512, 1, 2), {}, (32, 56, 56)), (nn.Conv2d, (1024, 2048, 1, 2), {}, (32, 14, 14)),
        (nn.Conv2d, (256, 64, 1), {}, (32, 56, 56)), (nn.Conv2d, (1024, 256, 1), {}, (32, 14, 14)),
        (nn.Conv2d, (512, 2048, 1), {}, (32, 7, 7)), (nn.Conv2d, (128, 128, 3, 1, 1), {}, (32, 28, 28)),
        (nn.Conv2d, (256, 256, 3, 1, 1), {}, (32, 14, 14)), (nn.Conv2d, (512, 512, 3, 1, 1), {}, (32, 7, 7)),
        (nn.Conv2d, (128, 128, 3, 2, 1), {}, (32, 56, 56)), (nn.Conv2d, (320, 320, 3, 1, 1), {}, (4, 64, 64)),
        (nn.Conv2d, (1280, 1280, 3, 1, 1), {}, (4, 16, 16)), (nn.Conv2d, (3, 96, 4, 4), {}, (64, 224, 224)),
        (nn.Conv2d, (3, 768, 16, 16), {}, (32, 224, 224)), (nn.Conv2d, (192, 384, 2, 2), {}, (64, 28, 28)),
        (nn.Conv2d, (3, 32, 3, 2, 1), {}, (32, 224, 224)), (nn.Conv2d, (128, 3, 3, 1, 1), {}, (16, 64, 64)),
        (nn.Conv2d, (2048, 256, 3, 1, 12), {"dilation": 12}, (6, 48, 48)), (nn.Conv2d, (64, 21, 1), {}, (8, 64, 64)),
        (nn.Conv2d, (32, 32, 3, 1, 1), {"groups": 32}, (32, 112, 112)),
        (nn.Conv2d, (576, 576, 3, 2, 1), {"groups": 576}, (32, 28, 28)),
        (nn.Conv2d, (256, 256, 3, 1, 1), {"groups": 32}, (32, 28, 28)), (nn.Conv1d, (1, 512, 10, 5), {}, (8, 160_000)),
        (nn.Conv1d, (512, 512, 3, 2), {}, (8, 8000)), (nn.Conv1d, (512, 512, 2, 2), {}, (8, 1000)),
        (nn.Conv1d, (768, 768, 128, 1, 64), {"groups": 16}, (8, 500)), (nn.Conv1d, (80, 512, 3, 1, 1), {}, (16, 1500)),
        (nn.Conv1d, (256, 512, 1), {}, (16, 400)), (nn.Conv1d, (256, 256, 31, 1, 15), {"groups": 256}, (16, 400)),
        (nn.Conv3d, (1, 16, 3, 1, 1), {}, (2, 96, 96, 96)), (nn.Conv3d, (64, 64, 3, 1, 1), {}, (2, 32, 32, 32)),
        (nn.Conv3d, (32, 4, 1), {}, (2, 48, 48, 48)), (nn.ConvTranspose3d, (64, 32, 2, 2), {}, (2, 24, 24, 24)),
        (nn.ConvTranspose2d, (512, 256, 2, 2), {}, (8, 32, 32)),
        (nn.ConvTranspose2d, (128, 64, 4, 2, 1), {}, (64, 16, 16)),
    )  # fmt: skip
    return _in_every_type(shapes)


def _in_every_type(kinds: Sequence[tuple]) -> Iterator[Variant]:
    """Each kind of layer in every type, and in two dimensions also with channels last."""
    for (kind, sizes, option, (batch, *space)), dtype in product(kinds, FLOATS):
        for layout in (torch.contiguous_format, torch.channels_last):
            if layout is torch.channels_last and kind not in (nn.Conv2d, nn.ConvTranspose2d):
                continue
            yield in_module(
                f"{kind.__name__} {sizes} {option} {batch}x{space} {short(dtype)} {layout}",
                lambda: kind(*sizes, **option).to(memory_format=layout),
                lambda: randn(batch, sizes[0], *space, dtype=dtype, memory_format=layout), dtype=dtype,
            )  # fmt: skip
