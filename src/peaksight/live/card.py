"""The card of a process, and the releases that drive it, as torch tells them."""

import os
import sys
from typing import Any

from peaksight.live.surroundings import processes_on
from peaksight.records.capsule import CapsuleCard

_SETTINGS = ("PYTORCH_ALLOC_CONF", "PYTORCH_CUDA_ALLOC_CONF")


def card_of(device: int | None, free_bytes: int | None) -> CapsuleCard:
    """The card `device`, by default the current one; what cannot be had is None or empty."""
    torch = sys.modules.get("torch")
    if torch is None or not torch.cuda.is_initialized():
        return CapsuleCard(device=device or 0, free_bytes=free_bytes)
    from peaksight.live.torch_private import memory_fraction

    cuda, index = torch.cuda, torch.cuda.current_device() if device is None else device
    properties = cuda.get_device_properties(index)
    fraction = memory_fraction(index)
    driver, processes = processes_on(_bus_id(properties))
    return CapsuleCard(
        device=index,
        name=cuda.get_device_name(index),
        total_bytes=properties.total_memory,
        free_bytes=cuda.mem_get_info(index)[0] if free_bytes is None else free_bytes,
        allocated_bytes=cuda.memory_allocated(index),
        reserved_bytes=cuda.memory_reserved(index),
        allowed_bytes=None if fraction >= 1 else int(properties.total_memory * fraction),
        num_alloc_retries=cuda.memory_stats(index).get("num_alloc_retries"),
        driver=driver,
        processes=processes,
    )


def versions() -> dict[str, str]:
    """The releases of torch, CUDA and NCCL and the allocator's settings, as the fields of `CapsuleRun`."""
    torch = sys.modules.get("torch")
    settings = next((os.environ[name] for name in _SETTINGS if os.environ.get(name)), "")
    if torch is None:
        return {"torch": "", "cuda": "", "nccl": "", "settings": settings}
    return {
        "torch": str(torch.__version__),
        "cuda": torch.version.cuda or "",
        "nccl": _nccl(torch),
        "settings": settings,
    }


def _nccl(torch: Any) -> str:
    try:
        return ".".join(map(str, torch.cuda.nccl.version()))
    except (AttributeError, RuntimeError):
        return ""


def _bus_id(properties: Any) -> str:
    """As NVML writes it, empty where the release of torch does not tell."""
    domain, bus, device = (getattr(properties, f"pci_{part}_id", None) for part in ("domain", "bus", "device"))
    return "" if domain is None or bus is None or device is None else f"{domain:08x}:{bus:02x}:{device:02x}.0"
