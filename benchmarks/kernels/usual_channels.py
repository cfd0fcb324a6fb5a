"""On a machine with a GPU: `python usual_channels.py FILE SECONDS` measures workspaces of convolutions in networks.

Lines as those of few_channels.py, of problems in an order drawn once, until the time is over. Under `peaksight run` it
prints what the simulation gives, each after ROW.
"""

import json
import random
import sys
import time
from collections.abc import Iterator
from itertools import product
from pathlib import Path

import torch
from few_channels import measure

# Window, stride and padding; channels in and out; samples and pixels.
WINDOWS = ((1, 1, 0), (1, 2, 0), (2, 2, 0), (3, 1, 1), (3, 2, 1), (4, 2, 1), (5, 1, 2), (7, 2, 3), (8, 4, 0))
CHANNELS = (
    (16, 16), (32, 32), (48, 48), (64, 64), (64, 128), (96, 96), (128, 128), (128, 1), (256, 64), (64, 256),
    (256, 256), (512, 512), (3, 64), (64, 3),
)  # fmt: skip
SIZES = ((2, 128), (16, 32), (16, 128), (32, 14), (64, 56), (256, 28))
MOST_ELEMENTS = 2**28


def problems() -> Iterator[tuple]:
    """Those of a size that a card has time for."""
    types = (torch.float32, torch.bfloat16)
    drawn = [
        (*channels, window, size, dtype, is_last, False)
        for window, channels, size, dtype, is_last in product(WINDOWS, CHANNELS, SIZES, types, (False, True))
        if max(channels) * size[0] * size[1] ** 2 <= MOST_ELEMENTS and window[0] <= size[1]
    ]
    random.Random(0).shuffle(drawn)
    yield from drawn


if __name__ == "__main__":
    path, end = Path(sys.argv[1]), time.monotonic() + float(sys.argv[2])
    with path.open("w") as file:
        for problem in problems():
            line = json.dumps(measure(*problem))
            print(f"ROW {line}")
            file.write(f"{line}\n")
            if time.monotonic() > end:
                break
