"""By which names the script reaches its tensors: the variables of its running frames, and what they lead to."""

import dis
from collections import UserDict, deque
from collections.abc import Iterator, Mapping
from functools import cache
from itertools import islice
from types import CodeType, FrameType, ModuleType
from typing import Any, NamedTuple

import torch
from torch import nn

from peaksight.virtual_gpu.frames import is_ours, variables_of
from peaksight.virtual_gpu.source_lines import SourceLines, installed_name

# How far from a variable a tensor may be, and at how many objects a look looks.
MAX_DEPTH, MAX_OBJECTS = 5, 50_000
# Of a long list only so many are looked at: its members are alike.
MAX_MEMBERS = 2_000
_PLAIN = (str, bytes, int, float, complex, bool, type(None), type, ModuleType, torch.dtype, torch.device)
_CONTAINERS: tuple[Any, ...] = (list, tuple, set, frozenset, deque)
_OF_MODULE = {"_parameters", "_buffers"}
# Frames of these say nothing of the script.
_READS_GLOBAL = {"LOAD_GLOBAL", "LOAD_NAME"}
_LOOKS_AT_LOCALS = {"locals", "vars", "eval", "exec"}
_MACHINERY = ("torch/",)


class Named(NamedTuple):
    """A tensor, an expression that leads to it, and the frame in which that holds (`train.py:main`)."""

    tensor: torch.Tensor
    name: str
    where: str


def named_tensors(frame: FrameType | None, lines: SourceLines) -> Iterator[Named]:
    """Every tensor that the frames from `frame` outwards lead to, by the shortest name of the innermost frame.

    Parameters and buffers of modules are left out, as are the frames of torch's own machinery.
    """
    search = _Search()
    while frame is not None:
        where = _where(frame, lines)
        if where:
            yield from search.below(variables_of(frame), where)
        frame = frame.f_back


def _where(frame: FrameType, lines: SourceLines) -> str:
    """The file and function of a frame of the script or of a library, empty for ours and for machinery."""
    code = frame.f_code
    if is_ours(code.co_filename) or code.co_filename.startswith("<"):
        return ""
    installed = installed_name(code.co_filename)
    if (installed is not None and installed.startswith(_MACHINERY)) or _looks_at_locals(code):
        return ""
    return f"{lines.name_of(code.co_filename)}:{code.co_name}"


@cache
def _looks_at_locals(code: CodeType) -> bool:
    """Whether `code` calls a function that sees its variables; `model.eval()` is none."""
    return not _LOOKS_AT_LOCALS.isdisjoint(code.co_names) and any(
        step.opname in _READS_GLOBAL and step.argval in _LOOKS_AT_LOCALS for step in dis.get_instructions(code)
    )


class _Search:
    """Breadth first, and no object twice."""

    def __init__(self) -> None:
        self._seen: set[int] = set()
        self._num_left = MAX_OBJECTS
        self._kept: list[Any] = []

    def below(self, variables: Mapping[str, Any], where: str) -> Iterator[Named]:
        """The tensors that `variables` lead to."""
        self._kept.append(variables)
        pending = deque((name, value, 0) for name, value in variables.items() if not name.startswith("__"))
        while pending and self._num_left > 0:
            name, value, depth = pending.popleft()
            if isinstance(value, _PLAIN) or id(value) in self._seen:
                continue
            self._seen.add(id(value))
            self._num_left -= 1
            if isinstance(value, torch.Tensor):
                if not isinstance(value, nn.Parameter):
                    yield Named(value, name, where)
            elif depth < MAX_DEPTH or isinstance(value, nn.Module):
                pending.extend((_joined(name, path), member, depth + 1) for path, member in _found_in(value))


def _joined(name: str, path: str) -> str:
    """The variable of a closure has a name of its own."""
    return name + path if path.startswith((".", "[")) else path


def _found_in(value: Any) -> list[tuple[str, Any]]:
    """The members of `value`; none of an object that cannot be looked at, nor of ours."""
    if type(value).__module__.startswith("peaksight."):
        return []
    try:
        return list(_members(value))
    except Exception:  # whatever an attribute of the script's raises
        return []


def _members(value: Any) -> Iterator[tuple[str, Any]]:
    """What `value` holds, with what leads there: `.attribute`, `[key]`, or the name of a variable of a closure."""
    if isinstance(value, UserDict):
        yield ".data", value.data
    elif isinstance(value, dict):
        attributes = getattr(value, "__dict__", {})  # of an output of transformers every key is one
        for key, member in islice(dict.items(value), MAX_MEMBERS):
            yield f".{key}" if key in attributes else f"[{key!r}]", member
    elif isinstance(value, _CONTAINERS):
        for place, member in enumerate(islice(_plainly(value), MAX_MEMBERS)):
            yield f"[{place}]", member
    elif isinstance(value, nn.Module):
        yield from _members_of_module(value)
    elif callable(value) and getattr(value, "__closure__", None):
        names = value.__code__.co_freevars
        for name, cell in zip(names, value.__closure__, strict=True):
            yield name, _content(cell)
    else:
        for key, member in islice(getattr(value, "__dict__", {}).items(), MAX_MEMBERS):
            yield f".{key}", member


def _plainly(value: Any) -> Iterator[Any]:
    """The members of a container as its own type keeps them: a subclass may read them from elsewhere."""
    kind = next(kind for kind in _CONTAINERS if isinstance(value, kind))
    return kind.__iter__(value)


def _members_of_module(module: nn.Module) -> Iterator[tuple[str, Any]]:
    for key, member in list(vars(module).items()):
        if key == "_modules":
            yield from ((f".{name}", child) for name, child in member.items())
        elif key not in _OF_MODULE and not key.endswith("_hooks") and not key.startswith("__"):
            yield f".{key}", member


def _content(cell: Any) -> Any:
    try:
        return cell.cell_contents
    except ValueError:  # not assigned yet
        return None
