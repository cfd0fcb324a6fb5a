"""Series of convolutions, each along one axis, for reading formulas of workspaces off (ask_cudnn_convolutions.py)."""

import random
from collections.abc import Iterator, Sequence
from itertools import product
from math import prod
from typing import Any

HALF = ("float16", "bfloat16")
TYPES = ("float32", *HALF)
LAYOUTS = (False, True)
SAMPLES = (1, 2, 4, 8, 16, 32, 64, 128)
SIDES = (7, 8, 14, 15, 16, 28, 32, 56, 64, 112)
MOST_ELEMENTS = 2**27
MOST_OPERATIONS = 2e12


def problem(
    samples: int, channels: int, filters: int, sides: tuple[int, ...], kernel: int, stride: int = 1, dilation: int = 1,
    groups: int = 1, dtype: str = "float32", last: bool = False, transposed: bool = False, padding: int | None = None,
) -> dict[str, Any]:  # fmt: skip
    """A line as network_layers.py has it; the padding is that which keeps the size."""
    dims = len(sides)
    border = (dilation * (kernel - 1) + 1 - (stride if transposed else 1)) // 2 if padding is None else padding
    widths = (channels, filters // groups) if transposed else (filters, channels // groups)
    return {
        "x": [samples, channels, *sides], "w": [*widths, *[kernel] * dims], "stride": [stride] * dims,
        "padding": [border] * dims, "dilation": [dilation] * dims, "groups": groups, "transposed": transposed,
        "dtype": dtype, "last": last,
    }  # fmt: skip


def of_groups() -> Iterator[dict[str, Any]]:
    """Groups by channels of each; then samples, pixels and windows of four kinds of layers."""
    kinds = list(product((1, 2), TYPES, LAYOUTS))
    for groups, each in product((2, 4, 8, 16, 32, 64, 128, 256, 512), (2, 4, 8, 16, 32, 64)):
        if groups * each <= 2048:
            for stride, dtype, last in kinds:
                width = groups * each
                yield problem(16, width, width, (28, 28), 3, stride, groups=groups, dtype=dtype, last=last)
    for (groups, width), (stride, dtype, last) in product(((32, 128), (32, 512), (16, 256), (512, 1024)), kinds):
        for samples, side, kernel in around((16, 28, 3), SAMPLES, SIDES, (1, 3, 5, 7)):
            yield problem(samples, width, width, (side, side), kernel, stride, 1, groups, dtype, last)


def depthwise() -> Iterator[dict[str, Any]]:
    """A group for each channel, where cuDNN may run: channels last, or in float16."""
    widths = (16, 24, 32, 48, 64, 96, 128, 144, 192, 256, 384, 512, 640, 768, 960, 1152)
    kinds = ((TYPES[0], True), (HALF[0], False), (HALF[0], True), (HALF[1], True))
    for stride, (dtype, last) in product((1, 2), kinds):
        for kernel, width in product((3, 5, 7), widths):
            yield problem(16, width, width, (28, 28), kernel, stride, 1, width, dtype, last)
        for samples, side, kernel in around((16, 28, 3), SAMPLES, SIDES, (5, 9)):
            yield problem(samples, 192, 192, (side, side), kernel, stride, 1, 192, dtype, last)


def in_half() -> Iterator[dict[str, Any]]:
    """Three taps by three as diffusion has them, and single taps over images of even and odd rows."""
    widths = (
        (64, 64),
        (128, 128),
        (256, 128),
        (320, 320),
        (640, 320),
        (320, 640),
        (640, 640),
        (1280, 640),
        (1280, 1280),
    )
    for (channels, filters), samples, side in product(widths, SAMPLES[:5], (8, 16, 32, 64)):
        for dtype, last in ((HALF[0], False), (HALF[1], True)):
            yield problem(samples, channels, filters, (side, side), 3, 1, dtype=dtype, last=last)
    for channels, filters, side in product((64, 256, 512, 1024), (128, 512, 2048), (6, 7, 10, 14, 18, 22, 26, 28, 30)):
        for samples in (1, 8, 64):
            yield problem(samples, channels, filters, (side, side), 1, dtype=HALF[1])
    for samples, side in product(SAMPLES, (14, 26, 30)):
        yield problem(samples, 1024, 512, (side, side), 1, dtype=HALF[1])


def with_stride() -> Iterator[dict[str, Any]]:
    """Windows of players, stems and generators in single precision."""
    for samples, dtype in product((*SAMPLES, 256, 512), (TYPES[0], HALF[1])):
        for channels in (1, 3, 4, 12):
            yield problem(samples, channels, 32, (84, 84), 8, 4, dtype=dtype, padding=0)
        yield problem(samples, 32, 64, (20, 20), 4, 2, dtype=dtype, padding=0)
        yield problem(samples, 64, 64, (9, 9), 3, 1, dtype=dtype, padding=0)
    for channels, filters, side, kernel in product((3, 32, 64, 128, 256), (32, 64, 256, 512), (16, 32, 64), (3, 4, 5)):
        yield problem(16, channels, filters, (side, side), kernel, 2, padding=1)


def lines() -> Iterator[dict[str, Any]]:
    """One dimension: codecs, speech and forecasts."""
    for channels, filters, dtype in product((1, 16, 32, 64, 128, 256, 512), (16, 32, 64, 128, 256, 512), TYPES[::2]):
        for length, kernel, stride in around((2048, 3, 1), (100, 400, 1000, 4096, 16384), (1, 5, 7, 15), ()):
            yield problem(8, channels, filters, (length,), kernel, stride, dtype=dtype)
    for channels, (kernel, stride), dtype in product(
        (16, 32, 64, 128, 256, 512), ((4, 2), (8, 4), (10, 5), (16, 8)), TYPES
    ):
        for length, transposed in product((400, 2000, 16000), (False, True)):
            ends = (2 * channels, channels) if transposed else (channels, 2 * channels)
            yield problem(4, *ends, (length,), kernel, stride, dtype=dtype, transposed=transposed)
    for channels, kernel, dilation in product((32, 64, 128, 256, 512), (3, 7), (3, 9)):
        yield problem(4, channels, channels, (2000,), kernel, 1, dilation)


def volumes() -> Iterator[dict[str, Any]]:
    """Three dimensions: three taps each way, single ones, and steps down and up."""
    for channels, filters, side, dtype in product((1, 16, 32, 64, 128), (16, 32, 64, 128), (16, 32, 48, 64), TYPES):
        for kernel, stride in ((3, 1), (3, 2), (1, 1)):
            yield problem(2, channels, filters, (side,) * 3, kernel, stride, dtype=dtype)
        if channels > filters:
            yield problem(2, channels, filters, (side,) * 3, 2, 2, dtype=dtype, transposed=True)


def transposed() -> Iterator[dict[str, Any]]:
    """Steps up of images."""
    for channels, kernel, side, samples, dtype in product(
        (32, 64, 128, 256, 512), (2, 4), (8, 16, 32, 64), (1, 8, 32), TYPES
    ):
        for last in LAYOUTS:
            sides = (side, side)
            yield problem(samples, 2 * channels, channels, sides, kernel, 2, dtype=dtype, last=last, transposed=True)


def odd_channels() -> Iterator[dict[str, Any]]:
    """Channels that cannot be loaded by fours or eights."""
    widths = (2, 3, 5, 7, 9, 12, 17, 33, 36, 65, 66, 67, 68, 129, 255, 257)
    for odd, dtype, last, kernel in product(widths, TYPES, LAYOUTS, (1, 3)):
        for channels, filters in ((odd, 64), (64, odd), (odd, odd)):
            yield problem(16, channels, filters, (32, 32), kernel, dtype=dtype, last=last)


def single_steps() -> Iterator[dict[str, Any]]:
    """Single taps with a stride, as residual networks take to fewer positions."""
    sizes = ((1, 56), (2, 128), (4, 80), (16, 56), (32, 28), (64, 28), (32, 56), (256, 14), (256, 28))
    widths = product((24, 48, 64, 80, 96, 112, 128, 160, 192, 256, 320, 512), (64, 96, 128, 256, 512))
    for (channels, filters), (samples, side), dtype in product(widths, sizes, TYPES[::2]):
        yield problem(samples, channels, filters, (side, side), 1, 2, dtype=dtype, padding=0)


def dilated_heads() -> Iterator[dict[str, Any]]:
    """Windows with gaps, of segmentation networks."""
    widths = ((2048, 256), (1280, 256), (960, 256), (512, 512), (512, 256), (320, 256), (256, 256))
    for (channels, filters), samples in product(widths, (1, 2, 4, 6, 8, 12, 16, 32)):
        for side, dilation in product((24, 28, 32, 33, 40, 48, 60, 64, 65), (2, 12)):
            yield problem(samples, channels, filters, (side, side), 3, 1, dilation)


def whole_windows() -> Iterator[dict[str, Any]]:
    """As large as the picture, as networks end that are convolutions throughout."""
    sizes = product((1, 2, 8, 16, 32, 64, 128), (4, 6, 7, 8, 14), (16, 64, 256, 512), (10, 64, 128, 256, 1024, 4096))
    for samples, side, channels, filters in sizes:
        for dtype in TYPES[:: 1 + (samples < 16)]:
            yield problem(samples, channels, filters, (side, side), side, dtype=dtype, padding=0)


def residual() -> Iterator[dict[str, Any]]:
    """Three taps and single ones of residual networks, by batches."""
    batches = (8, 16, 24, 32, 48, 64, 96, 128, 256)
    kept = [(width, width) for width in (64, 128, 256, 512)]
    widened = [(64, 128), (128, 256), (256, 512)]
    pointwise = [(64, 256), (256, 64), (256, 128), (128, 512), (512, 128), (512, 256), (256, 1024), (1024, 256)]
    for samples, side, dtype in product(batches, (7, 14, 28, 56, 112), TYPES[::2]):
        for ends, kernel, stride in [
            *((ends, 3, 1) for ends in kept + widened),
            *((ends, 3, 2) for ends in kept + widened),
            *((ends, 1, 1) for ends in pointwise),
        ]:
            yield problem(samples, *ends, (side, side), kernel, stride, dtype=dtype)


def patches() -> Iterator[dict[str, Any]]:
    """Windows side by side over few channels, as transformers cut pictures and clips up."""
    batches = (1, 2, 4, 8, 16, 32, 48, 64, 96, 128, 256)
    pictures = ((4, 96), (8, 384), (14, 1024), (16, 192), (16, 384), (16, 768), (16, 1024), (32, 384), (32, 768))
    for samples, (patch, filters), side in product(batches, pictures, (224, 336, 384)):
        for dtype, last in ((TYPES[0], False), (HALF[0], False), (HALF[1], False), (HALF[1], True)):
            sides = (side // patch * patch,) * 2
            yield problem(samples, 3, filters, sides, patch, patch, dtype=dtype, last=last, padding=0)


def stems() -> Iterator[dict[str, Any]]:
    """The first windows of residual networks."""
    for samples, side, (kernel, stride) in product(SAMPLES, (32, 64, 128, 224, 256, 384), ((7, 2), (3, 2), (3, 1))):
        for filters, dtype in product((16, 32, 64, 128), TYPES):
            yield problem(samples, 3, filters, (side, side), kernel, stride, dtype=dtype)


def pointwise() -> Iterator[dict[str, Any]]:
    """Single taps that widen fourfold and narrow again, in half."""
    batches = (8, 16, 32, 48, 64, 96, 128, 256)
    for width, samples, side, dtype in product(
        (96, 160, 192, 256, 320, 384, 512, 640, 768), batches, (7, 14, 28), HALF
    ):
        for ends in ((width, 4 * width), (4 * width, width)):
            yield problem(samples, *ends, (side, side), 1, dtype=dtype)


SERIES = (
    of_groups,
    depthwise,
    in_half,
    with_stride,
    lines,
    volumes,
    transposed,
    odd_channels,
    single_steps,
    dilated_heads,
    whole_windows,
    residual,
    patches,
    stems,
    pointwise,
)


def around(base: tuple[int, ...], *axes: tuple[int, ...]) -> Iterator[tuple[int, ...]]:
    """`base`, and each of its numbers replaced by each of an axis."""
    yield base
    for position, axis in enumerate(axes):
        for value in axis:
            if value != base[position]:
                yield (*base[:position], value, *base[position + 1 :])


def all_series(names: Sequence[str] = ()) -> list[dict[str, Any]]:
    """Every problem of the series `names`, or of all, of a size that a card has time for, in an order drawn once."""
    chosen = [of for of in SERIES if not names or of.__name__ in names]
    found = {str(each): each | {"series": of.__name__} for of in chosen for each in of() if is_of_size(each)}
    drawn = list(found.values())
    random.Random(0).shuffle(drawn)
    return drawn


def is_of_size(problem: dict[str, Any]) -> bool:
    """Whether its tensors have at most MOST_ELEMENTS, and its work is no longer than theirs."""
    (samples, channels, *sides), filters = problem["x"], problem["w"][0]
    if problem["transposed"]:
        filters = problem["w"][1] * problem["groups"]
    taps, positions = prod(problem["w"][2:]), 1
    for side, step in zip(sides, problem["stride"], strict=True):
        positions *= side * step if problem["transposed"] else max(1, side // step)
    windows = prod(sides) if problem["transposed"] else positions
    work = 2 * samples * channels * filters * taps * windows / problem["groups"]
    return samples * max(channels * prod(sides), filters * positions) <= MOST_ELEMENTS and work < MOST_OPERATIONS
