"""On a machine with a GPU: `python fourier.py FILE` measures what Fourier transforms take beside their results.

A line of JSON for each: bytes of a transform of real rows, of the way back, and of complex rows. Those of the second
call, of plans that are kept.
"""

import json
import sys
from pathlib import Path

import torch
from few_channels import workspace

SIZES = (
    17, 97, 100, 127, 221, 251, 480, 509, 600, 1000, 1009, 1021, 2039, 2600, 4096, 4097, 4099, 5000, 6000, 8000, 8192,
    8193, 10000, 12288, 12500, 15000, 16000, 16383, 16384, 16385, 20000, 24000, 24576, 30000, 32000, 32768, 32771,
    40960, 44100, 48000, 50000, 60000, 65536, 65537, 80000, 88200, 96000, 100000, 131072, 160000, 200000, 262144,
    480000, 524288, 1000000, 1048576, 2097152, 4194304,
)  # fmt: skip
ROWS = (1, 3, 8, 64)
MOST_ELEMENTS = 1 << 24


def measure(size: int, rows: int, dtype: torch.dtype) -> dict[str, object]:
    """Three transforms of `rows` rows of `size` numbers."""
    real = torch.ones(rows, size, device="cuda", dtype=dtype)
    halved, spectra = torch.fft.rfft(real), torch.fft.fft(real)
    calls = {
        "ahead": lambda: torch.fft.rfft(real),
        "back": lambda: torch.fft.irfft(halved, n=size),
        "complex": lambda: torch.fft.fft(spectra),
    }
    taken = {name: workspace(call) for name, call in calls.items()}
    return {"size": size, "rows": rows, "dtype": str(dtype).removeprefix("torch.")} | taken


if __name__ == "__main__":
    with Path(sys.argv[1]).open("w") as file:
        for dtype in (torch.float32, torch.float64):
            for size in SIZES:
                for rows in ROWS:
                    if rows * size <= MOST_ELEMENTS:
                        file.write(json.dumps(measure(size, rows, dtype)) + "\n")
