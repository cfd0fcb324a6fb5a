"""Memory that a training log prints with its steps, sampled along the log."""

import re

from peaksight.postmortem.figures import parse_figure
from peaksight.records import MemorySample
from peaksight.units import MIB

# A step and, on the same line, memory in use: Lightning, detectron2, mmcv, timm, YOLO, and what people print.
_LINE = re.compile(
    r"\b(?:global[_ ]?step|step|iter(?:ation)?)s?[ :=\[]{1,4}(\d{1,9})(?=\D)[^\n]{0,300}?"
    r"\b(?:gpu[_ ]?)?(?:max[_ ]?)?mem(?:ory)?(?:[_ ]?(?:alloc(?:ated)?|used|usage))?[ :=(]{1,4}"
    r"(\d{1,6}(?:\.\d{1,3})?)\s?(GiB|GB|MiB|MB|G|M)?\b",
    re.IGNORECASE,
)
_SLICE, _SHORTEST = 8 << 10, 512
_SLICES_PER_BLOCK = 8
_MAX_PER_SLICE = 2


def find_samples(block: bytes) -> list[MemorySample]:
    """Some of the lines in `block` that tell the memory of a step; few, for a log may be long."""
    if b"mem" not in block and b"Mem" not in block:
        return []
    spacing = max(len(block) // _SLICES_PER_BLOCK, _SHORTEST)
    return [
        sample
        for start in range(0, len(block), spacing)
        for sample in _in_text(block[start : start + min(spacing, _SLICE)].decode("utf-8", errors="replace"))
    ]


def _in_text(text: str) -> list[MemorySample]:
    """A number without a unit is MiB, as detectron2 and mmcv print it."""
    found = []
    for match, _ in zip(_LINE.finditer(text), range(_MAX_PER_SLICE), strict=False):
        figure = parse_figure("memory", f"{match[2]} {match[3] or ''}", unit_bytes=MIB)
        if figure is not None and figure.bytes is not None:
            found.append(MemorySample(step=int(match[1]), bytes=figure.bytes))
    return found
