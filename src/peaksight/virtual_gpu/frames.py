"""Which frames of a running script a run on the card would have too, without this package and the fake kernels."""

import inspect
import os
from collections.abc import Sequence
from functools import cache
from types import CodeType, FrameType
from typing import Any

PACKAGE = os.path.dirname(os.path.dirname(os.path.abspath(__file__))) + os.sep
# Outside of them are the frames that started the run.
_RUNNERS = {os.path.join(PACKAGE, "virtual_gpu", "script", name) for name in ("runner.py", "real_run.py")}
# Where an operator goes on in Python for a fake tensor: on the card its frames end before it.
_FAKE_KERNELS = f"{os.sep}torch{os.sep}_subclasses{os.sep}"
_MODE = os.path.join(PACKAGE, "virtual_gpu", "tensors", "mode.py")
_WAY_THERE = tuple(
    os.path.join("torch", *path)
    for path in (("_compile.py",), ("_dynamo", "eval_frame.py"), ("utils", "_stats.py"), ("_ops.py",))
)
_CALL_OF_OPERATOR = os.path.join("torch", "_ops.py")
# A function of torch asks the function mode through it, which calls the same function again.
_DETOUR = os.path.join("torch", "overrides.py")


def variables_of(frame: FrameType) -> dict[str, Any]:
    """The variables of `frame`: of a function its local ones.

    Reading `f_locals` fills a dictionary that lives as long as the frame and would keep its tensors alive: it is
    emptied, which the script could see only through `locals()`.
    """
    seen = frame.f_locals
    names = dict(seen)
    if frame.f_code.co_flags & inspect.CO_OPTIMIZED and isinstance(seen, dict):  # from 3.13 on a view, keeping nothing
        seen.clear()
    return names


@cache
def is_ours(filename: str) -> bool:
    """Whether `filename` belongs to this package."""
    return filename.startswith(PACKAGE)


def visible(codes: Sequence[CodeType]) -> list[int]:
    """The positions of the frames running `codes`, outermost first, that the card's run would have too."""
    kept: list[int] = []
    after_ours = after_detour = False
    for position, code in enumerate(codes):
        if is_ours(code.co_filename):
            after_ours = True
            after_detour |= _leave_detour(kept, codes)
            if code.co_filename in _RUNNERS:
                kept.clear()
            elif code.co_filename == _MODE:
                return _before_the_way_there(kept, codes)
        elif _FAKE_KERNELS in code.co_filename:
            return _before_the_way_there(kept, codes)
        elif not (after_ours and code.co_filename.endswith(_CALL_OF_OPERATOR)):
            after_detour |= _asked_before(kept, codes, code) and _leave_detour(kept, codes)
            if after_detour and kept and codes[kept[-1]] is code:
                kept.pop()
            kept.append(position)
            after_ours = after_detour = False
    return kept


def _asked_before(kept: list[int], codes: Sequence[CodeType], code: CodeType) -> bool:
    """Whether the function of `code` asked the mode just before: our frames between were taken out already."""
    return len(kept) > 1 and codes[kept[-2]] is code and codes[kept[-1]].co_filename.endswith(_DETOUR)


def _leave_detour(kept: list[int], codes: Sequence[CodeType]) -> bool:
    """Whether the innermost of `kept` led into this package only, and is taken out."""
    leads_here = bool(kept) and codes[kept[-1]].co_filename.endswith(_DETOUR)
    if leads_here:
        kept.pop()
    return leads_here


def _before_the_way_there(kept: list[int], codes: Sequence[CodeType]) -> list[int]:
    while kept and codes[kept[-1]].co_filename.endswith(_WAY_THERE):
        kept.pop()
    return kept
