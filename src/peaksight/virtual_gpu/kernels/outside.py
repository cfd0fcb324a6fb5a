"""Device memory that a process takes beside PyTorch's allocator: loaded kernels and the handles of CUDA's libraries.

The sizes are in outside_memory.toml. CUDA serves them by itself: where the card is full the library fails, while
PyTorch keeps the blocks that it has cached (pytorch#128601).
"""

import tomllib
from collections.abc import Callable
from dataclasses import dataclass, field
from functools import cache
from importlib.resources import files
from typing import Any

from peaksight.gpus import Card
from peaksight.units import MIB
from peaksight.virtual_gpu.device_rules import DeviceRules
from peaksight.virtual_gpu.kernels.libraries import CUBLAS, CUDNN, CUSOLVER, KERNELS, libraries_of
from peaksight.virtual_gpu.kernels.temporaries import KernelCall
from peaksight.virtual_gpu.runtime_errors import MEMORY_ALLOCATION, runtime_error

NAMES = {KERNELS: "loaded kernels", CUBLAS: "cuBLAS", CUDNN: "cuDNN", CUSOLVER: "cuSOLVER"}
TEXTS = {
    CUBLAS: "CUDA error: CUBLAS_STATUS_ALLOC_FAILED when calling `cublasCreate(handle)`",
    CUDNN: "cuDNN error: CUDNN_STATUS_INTERNAL_ERROR_DEVICE_ALLOCATION_FAILED",
    CUSOLVER: (
        "cusolver error: CUSOLVER_STATUS_INTERNAL_ERROR, when calling `cusolverDnCreate(handle)`. "
        "If you keep seeing this error, you may use `torch.backends.cuda.preferred_linalg_library()` to try linear "
        "algebra operators with other supported backends. "
        "See https://pytorch.org/docs/stable/backends.html#torch.backends.cuda.preferred_linalg_library"
    ),
}


@cache
def _table() -> dict[str, Any]:
    return tomllib.loads(files(__package__).joinpath("outside_memory.toml").read_text(encoding="utf-8"))


def is_measured(card: Card) -> bool:
    """Whether the sizes were measured on such a card."""
    return tuple(_table()["measured"]) == card.capability


@cache
def held_bytes(library: str, card: Card) -> int:
    """What `library` holds on `card` in each thread that uses it."""
    rows = [row for row in _table()[library] if tuple(row["since"]) <= card.capability]
    row = max(rows, key=lambda row: row["since"])
    threads = card.multi_processor_count * card.threads_per_multi_processor
    return row["mib"] * MIB * threads // row.get("threads", threads)


@dataclass(slots=True)
class OutsideMemory:
    """What this process has taken so far.

    `take` asks the card for bytes in the name of a library and says whether it had them. Where it had not, `fail` is
    called with the library, the bytes and the error that the library reports: it raises that, or returns when the card
    has the bytes after all.
    """

    card: Card
    rules: DeviceRules
    take: Callable[[str, int], bool]
    fail: Callable[[str, int, Exception], None]
    note: Callable[[str, str], None]
    _taken: set[tuple[str, bool]] = field(default_factory=set)
    _served: set[tuple[Any, bool]] = field(default_factory=set)

    def before_launch(self, call: KernelCall, in_backward: bool) -> None:
        """The results of `call` are there and its kernels start: take what its thread lacks."""
        if (call.func, in_backward) in self._served:
            return
        lacking = [each for each in libraries_of(call.func) if _key(each[0], in_backward) not in self._taken]
        for library, is_called in lacking:
            if is_called(call):
                self._take(library, in_backward)
        if all(_key(library, in_backward) in self._taken for library, _ in lacking):
            self._served.add((call.func, in_backward))

    def _take(self, library: str, in_backward: bool) -> None:
        num_bytes, name = held_bytes(library, self.card), NAMES[library]
        if not self.take(name, num_bytes):
            self.fail(name, num_bytes, library_error(library, self.rules))
            self.take(name, num_bytes)
        if not is_measured(self.card):
            self.note("outside-estimated", name)
        self._taken.add(_key(library, in_backward))


def _key(library: str, in_backward: bool) -> tuple[str, bool]:
    """Kernels are loaded for the process, a handle belongs to a thread."""
    return library, in_backward and library != KERNELS


def library_error(library: str, rules: DeviceRules) -> Exception:
    """What `library` reports at a full card."""
    if library != KERNELS:
        return RuntimeError(TEXTS[library])
    return runtime_error(MEMORY_ALLOCATION, rules.torch)
