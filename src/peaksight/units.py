"""Bytes for people: the only place that knows GiB and MiB."""

import re

KIB = 1 << 10
MIB = 1 << 20
GIB = 1 << 30

_UNITS = {
    **{"": 1, "b": 1},
    **{"k": KIB, "kib": KIB, "kb": 10**3},
    **{"m": MIB, "mib": MIB, "mb": 10**6},
    **{"g": GIB, "gib": GIB, "gb": 10**9},
}


def format_bytes(num_bytes: int) -> str:
    """Bytes in the unit a person would choose, as PyTorch's messages do: `8.09 GiB`, `85.00 MiB`, `512 B`."""
    if abs(num_bytes) >= GIB:
        return f"{num_bytes / GIB:.2f} GiB"
    if abs(num_bytes) >= MIB:
        return f"{num_bytes / MIB:.2f} MiB"
    if abs(num_bytes) >= KIB:
        return f"{num_bytes / KIB:.2f} KiB"
    return f"{num_bytes} B"


def format_difference(num_bytes: int) -> str:
    """`format_bytes` with a sign: `+1.20 GiB`, `-85.00 MiB`, `0 B`."""
    return f"{'+' if num_bytes > 0 else ''}{format_bytes(num_bytes)}"


def parse_bytes(text: str) -> int:
    """Bytes from `24GiB`, `512MiB`, `16GB` (decimal) or plain digits; ValueError for anything else."""
    match = re.fullmatch(r"\s*(\d+(?:\.\d+)?)\s*([A-Za-z]*)\s*", text)
    if match is None or match[2].lower() not in _UNITS:
        raise ValueError(f"not a size: {text!r} (write 24GiB, 512MiB or a number of bytes)")
    return int(float(match[1]) * _UNITS[match[2].lower()])
