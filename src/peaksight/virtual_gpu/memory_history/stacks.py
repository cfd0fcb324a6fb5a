"""The Python stacks in a memory snapshot, as torch's CapturedTraceback takes them."""

import sys
from functools import cache
from types import CodeType, FrameType
from typing import TypedDict

import torch

from peaksight.virtual_gpu.frames import visible
from peaksight.virtual_gpu.torch_private import ENGINE

# The running frames, innermost first, each as its file, line and function.
Stack = tuple[tuple[str, int, str], ...]


class Frame(TypedDict):
    """One frame of a snapshot."""

    filename: str
    line: int
    name: str


def current_stack() -> Stack:
    """The frames that PyTorch's allocator would see on the card.

    Backward runs in a thread of its own there, which sees no line of the script but those that its hooks run.
    """
    frame: FrameType | None = sys._getframe(1)
    in_own_thread = torch.autograd.is_multithreading_enabled()
    running: list[tuple[CodeType, int]] = []
    while frame is not None and not (frame.f_code is ENGINE.__code__ and in_own_thread):
        running.append((frame.f_code, frame.f_lineno))
        frame = frame.f_back
    running.reverse()
    shown = (running[position] for position in reversed(visible([code for code, _ in running])))
    return tuple((code.co_filename, line, code.co_name) for code, line in shown)


class Frames:
    """Stacks as one snapshot holds them: equal stacks, and equal frames, are the same objects, which keeps it small."""

    def __init__(self) -> None:
        """No frame yet."""
        self._frame = cache(_frame)
        self.of = cache(self._of)

    def _of(self, stack: Stack) -> list[Frame]:
        return [self._frame(*place) for place in stack]


def _frame(filename: str, line: int, name: str) -> Frame:
    return Frame(filename=filename, line=line, name=name)
