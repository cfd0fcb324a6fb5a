"""On a machine with a GPU: `python drawn_layers.py FILE SECONDS SEED KIND...` measures convolutions drawn by chance.

A KIND is one of networks (layers of torchvision's networks that network_layers.py does not know, and others as people
write them), twice (the weight gradient of a second derivative: windows as large as the picture), products (single taps
over large images), four_taps, and trials (groups under `cudnn.benchmark`). Lines are those of network_layers.py.
"""

import json
import random
import sys
import time
from collections.abc import Callable
from pathlib import Path

import torch
from network_layers import BATCHES, MOST_ELEMENTS, TYPES, layers_of, measure

NETWORKS = {
    "densenet121": 224, "mnasnet1_0": 224, "squeezenet1_1": 224, "regnet_x_3_2gf": 224,
    "wide_resnet50_2": 224, "efficientnet_v2_s": 300, "resnext101_32x8d": 224, "mobilenet_v2": 224, "alexnet": 224,
    "regnet_y_1_6gf": 256, "resnet18": 96, "convnext_small": 288,
}  # fmt: skip
WIDTHS = (8, 16, 24, 32, 48, 64, 80, 96, 128, 160, 192, 256, 320, 384, 512, 640, 768, 1024)
SIDES = (4, 7, 8, 10, 13, 14, 16, 20, 24, 28, 32, 40, 48, 56, 64, 80, 96, 112, 128, 160, 192, 256)
NUMBER = 4000
MOST_OPERATIONS = 2e12
layers: list[tuple] = []


def networks(draw: random.Random) -> tuple:
    """A layer of a network, or one with a usual window between usual widths."""
    if draw.random() < 0.5:
        layer = draw.choice(layers)
    else:
        dims = draw.choice((1, 2, 2, 2, 2, 3))
        kernel, stride = draw.choice(((1, 1), (3, 1), (3, 1), (3, 2), (5, 1), (7, 1), (4, 2), (2, 2), (1, 2)))
        side = draw.choice(SIDES) * (16 if dims == 1 else 1)
        is_transposed = stride == 2 and kernel % 2 == 0 and draw.random() < 0.6
        layer = (
            draw.choice(WIDTHS), draw.choice(WIDTHS), kernel, stride, (kernel - stride + 1) // 2, 1, 1, (side,) * dims,
            is_transposed,
        )  # fmt: skip
    return draw.choice(BATCHES), *layer, draw.choice(TYPES), len(layer[7]) == 2 and draw.random() < 0.3


def twice(draw: random.Random) -> tuple:
    """`_convolution_double_backward` (ATen/native/Convolution.cpp): samples as channels, strides as dilation."""
    side, stride = draw.choice((4, 8, 16, 32, 64, 128)), draw.choice((1, 1, 2))
    kernel, padding = draw.choice(((3, 1), (1, 0), (4, 1), (5, 2)) if stride == 1 else ((4, 1), (3, 1), (1, 0), (2, 0)))
    window = max(1, (side + 2 * padding - kernel) // stride + 1)
    widths = (1, 1, 3, 32, 64, 128, 256, 512)
    samples = draw.choice((1, 1, 2, 4, 8, 16, 32, 64))
    return (
        draw.choice(widths), samples, draw.choice(widths), window, 1, padding, stride, 1, (side, side), False,
        torch.float32, draw.random() < 0.1,
    )  # fmt: skip


def products(draw: random.Random) -> tuple:
    """Single taps over images of 32 to 512 pixels, of few to 256 channels."""
    side, narrow = draw.choice((32, 48, 56, 64, 80, 96, 112, 128, 160, 192, 256, 320, 512)), WIDTHS[1:12]
    return (
        draw.choice((1, 2, 4, 8, 10, 16, 20, 24, 32, 64)), draw.choice(narrow), draw.choice(narrow), 1, 1, 0, 1, 1,
        (side, side), False, torch.float32, draw.random() < 0.2,
    )  # fmt: skip


def four_taps(draw: random.Random) -> tuple:
    """As generators and judges have them."""
    channels, filters = draw.choice((3, 32, 48, 64, 96, 128, 192, 256, 384, 512)), draw.choice((64, 96, 128, 256, 512))
    is_transposed, side = draw.random() < 0.4, draw.choice((4, 8, 16, 32, 64, 128, 256))
    sides = (filters, channels) if is_transposed else (channels, filters)
    stride = draw.choice((2, 2, 2, 1))
    return (
        draw.choice(BATCHES),
        *sides,
        4,
        stride,
        1,
        1,
        1,
        (side, side),
        is_transposed,
        torch.float32,
        draw.random() < 0.2,
    )


def trials(draw: random.Random) -> tuple:
    """Groups with a stride and without, as of ResNeXt, RegNet and depthwise networks."""
    side, groups, each = (
        draw.choice((7, 14, 28, 56, 112)),
        draw.choice((8, 16, 32, 64)),
        draw.choice((4, 8, 16, 24, 32)),
    )
    stride, kernel = draw.choice((1, 2)), 3
    if draw.random() < 0.3:
        groups, each, kernel = draw.choice(WIDTHS[3:]), 1, draw.choice((3, 5, 7))
    options = (kernel, stride, kernel // 2, 1, groups, (side, side), False)
    return draw.choice(BATCHES[2:]), groups * each, groups * each, *options, draw.choice(TYPES), draw.random() < 0.5


KINDS: dict[str, Callable[[random.Random], tuple]] = {
    each.__name__: each for each in (networks, twice, products, four_taps, trials)
}


def is_of_size(problem: tuple) -> bool:
    """Whether its tensors have at most MOST_ELEMENTS, and its work is no longer than theirs."""
    batch, channels, filters, kernel, stride, padding, _, groups, shape, is_transposed, *_ = problem
    windows = ((n,) * len(shape) if isinstance(n, int) else n for n in (kernel, stride, padding))
    taps, positions = 1, 1
    for size, step, border, side in zip(*windows, shape, strict=True):
        taps *= size
        positions *= side if is_transposed else max(1, (side + 2 * border - size) // step + 1)
    elements = batch * max(channels, filters) * torch.Size(shape).numel() * (4 if is_transposed else 1)
    return elements <= MOST_ELEMENTS and 2 * batch * channels * filters * taps * positions // groups < MOST_OPERATIONS


def main() -> None:
    """Every kind has its share of the seconds."""
    path, seconds, seed, *kinds = sys.argv[1:]
    layers[:] = [layer for each in NETWORKS.items() for layer in dict.fromkeys(layers_of(*each))]
    with Path(path).open("w") as file:
        for kind in kinds:
            draw, end = random.Random(int(seed)), time.monotonic() + float(seconds) / len(kinds)
            torch.backends.cudnn.benchmark = with_trials = kind == "trials"
            drawn = [problem for problem in (KINDS[kind](draw) for _ in range(NUMBER)) if is_of_size(problem)]
            for number, problem in enumerate(dict.fromkeys(drawn)):
                line = json.dumps({"kind": kind} | measure(problem, with_trials))
                print(f"ROW {line}")
                file.write(f"{line}\n")
                if number % 32 == 0:
                    torch.cuda.empty_cache()
                if time.monotonic() > end:
                    break


if __name__ == "__main__":
    main()
