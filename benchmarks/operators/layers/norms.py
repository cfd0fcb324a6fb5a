"""Normalisations."""

from collections.abc import Iterator
from itertools import product

import torch
from torch import nn

from benchmarks.operators.layers.making import FLOATS, Variant, in_module, randn, short


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
