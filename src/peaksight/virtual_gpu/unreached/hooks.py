"""Methods that a library calls when it comes to them: those that it did not, and branches in those that it did."""

import ast
import gc
import inspect
import sys
from collections.abc import Iterator
from contextlib import suppress
from types import FunctionType
from typing import Any
from weakref import ReferenceType, ref

from peaksight.records import NotReached
from peaksight.virtual_gpu.unreached.branches import Missed, Unreached
from peaksight.virtual_gpu.unreached.device_work import DeviceWork, OwnCall
from peaksight.virtual_gpu.unreached.probed_files import ProbedFiles
from peaksight.virtual_gpu.unreached.probes import Probe
from peaksight.virtual_gpu.unreached.training_frames import Region
from peaksight.virtual_gpu.unreached.values import module_of

# Bases whose methods are no hooks of a training loop: nn.Module, Dataset, autograd.Function; Enum, dict, Thread.
_NO_FRAMEWORKS = {"torch", *sys.stdlib_module_names}


class Hooks:
    """The own overrides of a library's methods, in classes that have an instance at the first look."""

    def __init__(self, files: ProbedFiles, work: DeviceWork) -> None:
        """`work` judges what uses the card."""
        self._files = files
        self._work = work
        self._instances: dict[type, ReferenceType[Any]] | None = None

    def missed(self) -> Iterator[Missed]:
        """Those that use the card and were not called; of those that were called, what they did not come to."""
        if self._instances is None:
            self._instances = _instances({cls for cls in _own_classes(self._files) if any(_hooks(cls))})
        for cls, reference in self._instances.items():
            instance = reference()
            for function in _hooks(cls) if instance is not None else ():
                if call := self._work.call_of(function, [instance], {}):
                    yield from _missed(function.__name__, call, self._files, self._work)


def _missed(name: str, call: OwnCall, files: ProbedFiles, work: DeviceWork) -> Iterator[Missed]:
    file = files.file_of(call.code)
    entry = next((each for each in call.tree.body if isinstance(each, Probe)), None)
    if file is None or entry is None or isinstance(call.tree, ast.Module):
        return
    if file.hits[entry.index]:
        yield from Unreached(Region(file, call.tree.body, call.conditions), work, files, {call.code}).find()
    elif work.is_in_call(call):
        yield Missed(file, entry.index, NotReached(at=f"{file.name}:{call.tree.lineno}", text=name))


def _own_classes(files: ProbedFiles) -> Iterator[type]:
    for module in list(sys.modules.values()):
        names = getattr(module, "__dict__", {})
        if names.get("__file__") in files.names:
            held = list(names.values())
            yield from (each for each in held if isinstance(each, type) and each.__module__ == module.__name__)


def _hooks(cls: type) -> Iterator[FunctionType]:
    for name, member in list(vars(cls).items()):
        if isinstance(member, FunctionType) and _is_hook(cls, name):
            yield inspect.unwrap(member)


def _is_hook(cls: type, name: str) -> bool:
    """Whether the method overrides one of a library, and not of torch or Python itself."""
    definers = [base for base in cls.__mro__[1:] if name in vars(base)]
    return bool(definers) and all(module_of(base).partition(".")[0] not in _NO_FRAMEWORKS for base in definers)


def _instances(classes: set[type]) -> dict[type, "ReferenceType[Any]"]:
    """One instance of each of `classes` that has any; a look at every object takes a tenth of a second."""
    found: dict[type, ReferenceType[Any]] = {}
    for candidate in gc.get_objects() if classes else ():
        if type(candidate) in classes and type(candidate) not in found:
            with suppress(TypeError):  # some can't have weak references
                found[type(candidate)] = ref(candidate)
    return found
