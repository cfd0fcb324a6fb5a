"""The private names of torch that a watched run touches, each behind a probe."""

from collections.abc import Callable
from functools import wraps
from types import ModuleType
from typing import Any

import torch

from peaksight.overlays.patches import Patches

Read = Callable[[int], dict[str, Any]]
Reset = Callable[[int], None]

# The same C functions under two names: `torch.cuda` has its own.
_READ = ("_cuda_memoryStats", "_accelerator_getDeviceStats")
_RESET = ("_cuda_resetPeakMemoryStats", "_accelerator_resetPeakStats")


def statistics_functions() -> tuple[Read, Reset]:
    """What reads the statistics of a card by its index, as a nested dictionary, and what resets their peaks."""
    return torch._C._cuda_memoryStats, torch._C._cuda_resetPeakMemoryStats


def replace_statistics(read: Read, reset: Reset) -> None:
    """Have every function of torch that reads or resets statistics call these, for good."""
    for names, function in ((_READ, read), (_RESET, reset)):
        for name in names:
            if hasattr(torch._C, name):
                setattr(torch._C, name, function)


def attach_out_of_memory_observer(observer: Callable[[int, int, int, int], None]) -> None:
    """Call `observer(device, requested, total, free)` where the allocator gives up, before it raises; for good.

    It is attached once the script uses CUDA: to do it earlier would be to initialize CUDA in its place.
    """
    attach = getattr(torch._C, "_cuda_attach_out_of_memory_observer", None)
    lazily = getattr(torch.cuda, "_lazy_call", None)
    if attach is not None and lazily is not None:
        lazily(lambda: attach(observer))


def history_is_recorded() -> bool:
    """Whether the allocator records its history, for whomever."""
    return bool(getattr(torch._C, "_cuda_isHistoryEnabled", lambda: False)())


def once_initialized(call: Callable[[], None]) -> None:
    """`call` once the script uses CUDA; never where torch offers no way to wait for that."""
    lazily = getattr(torch.cuda, "_lazy_call", None)
    if lazily is not None:
        lazily(call)


def replace_recording(patches: Patches, on_call: Callable[[], None]) -> Callable[..., Any] | None:
    """Have `on_call` hear of it when the script calls `_record_memory_history`; returns that function, if there is."""
    record: Callable[..., Any] | None = getattr(torch.cuda.memory, "_record_memory_history", None)
    if record is None:
        return None

    @wraps(record)
    def recording(*args: Any, **kwargs: Any) -> Any:
        on_call()
        return record(*args, **kwargs)

    patches.set(torch.cuda.memory, "_record_memory_history", recording)
    return record


def memory_snapshot() -> dict[str, Any] | None:
    """What the allocator holds and has done, None where it cannot be told."""
    take = getattr(torch.cuda.memory, "_snapshot", None)
    return None if take is None or not torch.cuda.is_initialized() else take()


def memory_fraction(device: int) -> float:
    """How much of the card the allocator may take, 1.0 where torch does not tell."""
    get = getattr(torch._C, "_cuda_getMemoryFraction", None)
    return 1.0 if get is None else get(device)


def loader_iterator(module: ModuleType) -> Any:
    """What iterates over a DataLoader, of `torch.utils.data.dataloader`; None where torch has it no more."""
    return getattr(module, "_BaseDataLoaderIter", None)
