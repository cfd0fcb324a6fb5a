"""What a stack tells: the person's line, and what part of training it belongs to.

The rule of virtual_gpu/source_lines.py, for stacks of another machine: what is a library is told by its path.
"""

import os
import re
from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass
from functools import cache
from itertools import takewhile

from peaksight.postmortem.snapshots.tables import Frame
from peaksight.records import Phase
from peaksight.records.frames import PLUMBING

_LIBRARY = re.compile(r"(?:.*/)?(?:site-packages|dist-packages|lib/python\d[\d.]*)/(?P<name>.+)")
# A source tree of torch, as developers have; and what its compiler writes.
_TORCH = re.compile(r".*/pytorch[^/]*/(?P<name>torch/.+)")
_COMPILED = re.compile(r".*/torchinductor_\w+/(?P<name>.+)")
_MODULE = "torch/nn/modules/module.py"
# Where the backward pass runs in the thread that called it.
_ENGINE = ("torch/autograd/graph.py", "_engine_run_backward")
_NOTEBOOK_CELL = re.compile(r"<ipython-input-\d+-\w+>|.*/ipykernel_\d+/\d+\.py")
# Where a thread of Python begins; the thread of the backward pass begins in torch, or has no frame.
_THREAD_STARTS = ("<module>", "_bootstrap", "_run_module_as_main")


@dataclass(frozen=True, slots=True)
class Place:
    """What is known from one stack.

    `source` is the innermost frame of the person as file and line, None where there is none; `library` the innermost
    library frame (`torch/nn/functional.py:5`) and `inner` the innermost outside of torch, the person's or a library's,
    or empty. `phase` is None where the stack decides nothing.
    """

    source: tuple[str, int] | None = None
    library: str = ""
    inner: str = ""
    script: str = ""
    phase: Phase | None = None
    runs_module: bool = False
    makes_parameters: bool = False
    without_grad: bool = False


def place_of(frames: tuple[Frame, ...]) -> Place:
    """What `frames`, innermost first, tell; an empty stack is the thread of a backward pass."""
    if not frames:
        return Place(phase=Phase.BACKWARD)
    known = [(frame, _library_name(frame.filename)) for frame in frames]
    python = [(frame, name) for frame, name in known if _is_python(frame)]
    calls = {(name, frame.name) for frame, name in python if name is not None}
    own = [frame for frame, name in python if name is None]
    below = takewhile(lambda call: call[1] is not None, python)
    libraries = (f"{name}:{frame.line}" for frame, name in below if name and not name.startswith(PLUMBING))
    return Place(
        source=(own[0].filename, own[0].line) if own else None,
        library=printable(next(libraries, "")),
        inner=_inner(python),
        script=next((frame.filename for frame in reversed(own) if frame.name == "<module>"), ""),
        phase=_phase(python, calls),
        runs_module=any(name == _MODULE and "_call_impl" in called for name, called in calls),
        makes_parameters=_makes_parameters(calls),
        without_grad=("torch/utils/_contextlib.py", "decorate_context") in calls,
    )


def _inner(python: list[tuple[Frame, str | None]]) -> str:
    """Empty where it is the person's line."""
    outside = ((frame, name) for frame, name in python if name is None or not name.startswith("torch/"))
    frame, name = next(outside, (None, None))
    return "" if frame is None or name is None else printable(f"{name}:{frame.line}")


class Names:
    """What reports call the person's files: relative to the script's folder, else to one that has all of them."""

    def __init__(self, places: Iterable[Place]) -> None:
        """The script is the outermost module of most of `places`."""
        places = list(places)
        scripts = Counter(place.script for place in places if place.script)
        script = scripts.most_common(1)[0][0] if scripts else ""
        self.script = printable(os.path.basename(script))
        files = {place.source[0] for place in places if place.source} | {script}
        absolute = [os.path.dirname(file) for file in files if file.startswith("/")]
        folders = os.path.dirname(script), os.path.commonpath(absolute) if absolute else ""
        self._prefixes = [folder + "/" for folder in folders if folder.strip("/")]

    def line(self, source: tuple[str, int] | None) -> str:
        """`train.py:88`, or empty."""
        if source is None:
            return ""
        filename, line = source
        prefix = next((prefix for prefix in self._prefixes if filename.startswith(prefix)), "")
        return printable(f"{filename.removeprefix(prefix)}:{line}")


def printable(text: str) -> str:
    """`text` without what could play tricks in a terminal: a snapshot is somebody else's file."""
    return text if text.isprintable() else "".join(letter if letter.isprintable() else "?" for letter in text)


def _phase(python: list[tuple[Frame, str | None]], calls: set[tuple[str, str]]) -> Phase | None:
    if not python or _ENGINE in calls:
        return Phase.BACKWARD
    if any(name.startswith("torch/optim/") and _is_step(name, called) for name, called in calls):
        return Phase.OPTIMIZER
    if ("torch/serialization.py", "save") in calls:
        return Phase.SAVE
    outermost, name = python[-1]
    if outermost.name not in _THREAD_STARTS and name is not None and name.startswith("torch/"):
        return Phase.BACKWARD
    return None


def _is_step(name: str, called: str) -> bool:
    """Whether a function of torch/optim runs within `Optimizer.step`."""
    is_step = called in ("step", "profile_hook_step", "_init_group", "wrapper", "_use_grad")
    return is_step and not name.endswith(("lr_scheduler.py", "swa_utils.py"))


def _makes_parameters(calls: set[tuple[str, str]]) -> bool:
    """`Module.to` and its like, a layer's own `__init__`, and what transformers load."""
    return any(
        (name == _MODULE and called == "_apply")
        or (name.startswith("torch/nn/modules/") and called == "__init__")
        or (name.startswith("transformers/") and called == "from_pretrained")
        for name, called in calls
    )


@cache
def _library_name(filename: str) -> str | None:
    """The name of a library's file below its packages, None for the person's own."""
    path = filename.replace("\\", "/")
    for pattern in (_LIBRARY, _COMPILED, _TORCH):
        found = pattern.fullmatch(path)
        if found is not None:
            return found["name"]
    is_own = not path.startswith("<") or _NOTEBOOK_CELL.fullmatch(path) is not None
    return None if is_own else path


@cache
def _is_python_file(filename: str) -> bool:
    return filename.endswith((".py", ".pyx")) or filename.startswith("<")


def _is_python(frame: Frame) -> bool:
    """With `stacks="all"` there are C++ frames between those of Python."""
    return _is_python_file(frame.filename)
