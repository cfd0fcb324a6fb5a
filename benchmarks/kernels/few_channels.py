"""On a machine with a GPU: `python few_channels.py FILE` measures the workspaces of convolutions of few channels.

A line of JSON for each problem: bytes beside the results in the forward and for either gradient. Under `peaksight run`
it prints what the simulation gives, each after ROW.
"""

import json
import sys
from collections.abc import Callable, Iterator
from itertools import product
from pathlib import Path

import torch

aten = torch.ops.aten
# Window, stride and padding; samples and pixels.
WINDOWS = ((1, 1, 0), (2, 2, 0), (3, 1, 1), (5, 2, 2))
SIZES = ((8, 64), (32, 256))
HALF, SINGLE = torch.float16, torch.float32


def problems() -> Iterator[tuple]:
    """Channels in and out, window, size, type, whether channels come last, whether it is transposed."""
    yield from product((1, 2, 3), (1, 3, 16), WINDOWS, SIZES, (HALF, SINGLE), (False, True), (False, True))
    for channels, *others in product(
        (1, 2, 3), (WINDOWS[0], WINDOWS[2]), SIZES, (torch.bfloat16,), (False,), (False, True)
    ):
        yield channels, channels, *others
    windows = (WINDOWS[0], WINDOWS[2])
    yield from product((4, 5, 6, 8, 12), (1, 2, 16), windows, ((16, 128),), (HALF, SINGLE), (False,), (False, True))


def workspace(run: Callable[[], object]) -> int:
    """Bytes that the second of two calls takes beside its results."""
    for _ in range(2):
        torch.cuda.reset_peak_memory_stats()
        results = run()
        peak = torch.cuda.max_memory_allocated() - torch.cuda.memory_allocated()
        del results
    return peak


def measure(
    channels: int, filters: int, window: tuple, size: tuple, dtype: torch.dtype, is_last: bool, transposed: bool
) -> dict[str, object]:
    """One problem."""
    (kernel, stride, padding), (samples, pixels) = window, size
    layout = torch.channels_last if is_last else torch.contiguous_format
    shape = (channels, filters) if transposed else (filters, channels)
    x = torch.ones(samples, channels, pixels, pixels, device="cuda", dtype=dtype).to(memory_format=layout)
    weight = torch.ones(*shape, kernel, kernel, device="cuda", dtype=dtype).to(memory_format=layout)
    options = ([stride] * 2, [padding] * 2, [1, 1], transposed, [0, 0], 1)
    gradient = torch.ones_like(aten.convolution(x, weight, None, *options))

    def of_gradient(*mask: bool) -> int:
        return workspace(lambda: aten.convolution_backward(gradient, x, weight, [0], *options, [*mask, False]))

    return {
        "c": channels, "k": filters, "window": kernel, "stride": stride, "n": samples, "size": pixels,
        "dtype": str(dtype).removeprefix("torch."), "last": is_last, "transposed": transposed,
        "forward": workspace(lambda: aten.convolution(x, weight, None, *options)),
        "input": of_gradient(True, False), "weight": of_gradient(False, True),
    }  # fmt: skip


if __name__ == "__main__":
    lines = [json.dumps(measure(*problem)) for problem in problems()]
    print(*(f"ROW {line}" for line in lines), sep="\n")
    Path(sys.argv[1]).write_text("".join(f"{line}\n" for line in lines))
