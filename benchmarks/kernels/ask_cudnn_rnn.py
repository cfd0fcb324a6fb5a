"""How much memory cuDNN wants for recurrent layers: asked of the library itself, without running a kernel.

    python ask_cudnn_rnn.py OUT.txt.gz [SECONDS]

One line an answer, with the columns of `COLUMNS`: random layers for SECONDS, the same ones each time. Needs a GPU.
"""

import ctypes
import glob
import gzip
import os
import random
import sys
import time
from ctypes import byref, c_int, c_size_t, c_void_p

import torch

COLUMNS = "mode dtype layers directions algorithm proj dropout packed batch steps input hidden math rows status".split()
COLUMNS += "workspace reserve workspace_of_inference weights".split()
MODES = {"tanh": 1, "lstm": 2, "gru": 3}
DTYPES = {"float32": 0, "float16": 2, "bfloat16": 9}
STANDARD, PERSIST_STATIC, PERSIST_SMALL = 0, 1, 3
BATCHES = [1, 2, 3, 4, 5, 7, 8, 12, 16, 24, 32, 33, 64, 96, 128, 200, 256]
STEPS = [1, 2, 3, 4, 5, 8, 10, 16, 20, 33, 50, 64, 100, 128, 256, 500, 1000]
INPUTS = [1, 3, 8, 16, 40, 64, 80, 100, 128, 256, 300, 512, 1024, 2048]
HIDDEN = [1, 3, 8, 16, 32, 64, 72, 96, 100, 128, 192, 200, 256, 300, 384, 400, 512, 650, 768, 1024, 1500]


class Cudnn:
    """The library that torch loaded, with the descriptors that a question needs."""

    def __init__(self) -> None:
        """Make a handle and the descriptors."""
        torch.zeros(1).cuda()
        folder = os.path.dirname(torch.__file__)
        found = glob.glob(f"{folder}/../nvidia/**/libcudnn.so.9", recursive=True)
        self._lib = ctypes.CDLL((found or ["libcudnn.so.9"])[0])
        self._handle, self._rnn, self._data, self._keep, self._drop = [c_void_p() for _ in range(5)]
        self._lib.cudnnCreate(byref(self._handle))
        self._lib.cudnnCreateRNNDescriptor(byref(self._rnn))
        self._lib.cudnnCreateRNNDataDescriptor(byref(self._data))
        self._make_dropout()

    def _make_dropout(self) -> None:
        num_bytes = c_size_t()
        self._lib.cudnnDropoutGetStatesSize(self._handle, byref(num_bytes))
        self._states = torch.empty(num_bytes.value, dtype=torch.uint8, device="cuda")
        for descriptor, p in ((self._keep, 0.0), (self._drop, 0.2)):
            self._lib.cudnnCreateDropoutDescriptor(byref(descriptor))
            states = (c_void_p(self._states.data_ptr()), num_bytes) if p else (c_void_p(), c_size_t(0))
            self._lib.cudnnSetDropoutDescriptor(
                descriptor, self._handle, ctypes.c_float(p), *states, ctypes.c_ulonglong(0)
            )

    def ask(
        self, mode: int, dtype: int, layers: int, directions: int, algorithm: int, proj: int, dropout: bool,
        packed: bool, batch: int, steps: int, input: int, hidden: int, math: int = 0,
    ) -> list[int]:  # fmt: skip
        """One line: the question, its status, and the sizes in bytes."""
        question = [mode, dtype, layers, directions, algorithm, proj, int(dropout), int(packed)]
        question += [batch, steps, input, hidden, math]
        status = self._lib.cudnnSetRNNDescriptor_v8(
            self._rnn, algorithm, mode, 2, directions - 1, 0, dtype, 1 if dtype == DTYPES["bfloat16"] else 0, math,
            input, hidden, proj or hidden, layers, self._drop if dropout else self._keep, 0 if packed else 1,
        )  # fmt: skip
        lengths = [max(1, steps - i * steps // (2 * batch)) for i in range(batch)] if packed else [steps] * batch
        status = status or self._lib.cudnnSetRNNDataDescriptor(
            self._data, dtype, 1 if packed else 0, steps, batch, input, (c_int * batch)(*lengths), None
        )
        sizes = [c_size_t() for _ in range(4)]
        status = status or self._sizes(*sizes)
        return [*question, sum(lengths), status, *(size.value for size in sizes)]

    def _sizes(self, workspace: c_size_t, reserve: c_size_t, of_inference: c_size_t, weights: c_size_t) -> int:
        ask = self._lib.cudnnGetRNNTempSpaceSizes
        common = (self._handle, self._rnn)
        return (
            ask(*common, 1, self._data, byref(workspace), byref(reserve))
            or ask(*common, 0, self._data, byref(of_inference), None)
            or self._lib.cudnnGetRNNWeightSpaceSize(*common, byref(weights))
        )


def questions(choose: random.Random):
    """Layers of one size, of every kind and type, with every algorithm that takes them."""
    batch, steps, input, hidden = map(choose.choice, (BATCHES, STEPS, INPUTS, HIDDEN))
    for mode, dtype, directions in ((m, d, n) for m in MODES.values() for d in DTYPES.values() for n in (1, 2)):
        layers, dropout, packed = choose.choice([1, 1, 2, 2, 3, 4, 6]), choose.random() < 0.3, choose.random() < 0.2
        projects = mode == MODES["lstm"] and hidden > 1 and choose.random() < 0.12
        proj = max(1, hidden // choose.choice([2, 3, 8])) if projects else 0
        for algorithm in (STANDARD, PERSIST_STATIC, PERSIST_SMALL):
            if algorithm == STANDARD or not (packed or proj):
                yield (mode, dtype, layers, directions, algorithm, proj, dropout, packed, batch, steps, input, hidden)


def main() -> None:
    """Ask until the time is over."""
    cudnn, choose = Cudnn(), random.Random(0)
    end = time.monotonic() + float(sys.argv[2] if len(sys.argv) > 2 else 60)
    with gzip.open(sys.argv[1], "wt") as file:
        print(*COLUMNS, file=file)
        while time.monotonic() < end:
            for question in questions(choose):
                print(*cudnn.ask(*question), file=file)


if __name__ == "__main__":
    main()
