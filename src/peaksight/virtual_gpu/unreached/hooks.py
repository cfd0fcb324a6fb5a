"""Methods that a library calls when it comes to them: those that it did not, and branches in those that it did."""

import ast
import gc
import inspect
import sys
from collections.abc import Iterator
from types import FunctionType
from typing import Any

from peaksight.records import NotReached
from peaksight.virtual_gpu.unreached.branches import Missed, Unreached
from peaksight.virtual_gpu.unreached.device_work import DeviceWork, OwnCall
from peaksight.virtual_gpu.unreached.probed_files import ProbedFiles
from peaksight.virtual_gpu.unreached.probes import Probe
from peaksight.virtual_gpu.unreached.training_frames import Region
from peaksight.virtual_gpu.unreached.values import module_of

# Bases whose methods are no hooks of a training loop: nn.Module, Dataset, autograd.Function; Enum, dict, Thread.
_NO_FRAMEWORKS = {"torch", *sys.stdlib_module_names}


def missed_in_hooks(files: ProbedFiles, work: DeviceWork) -> Iterator[Missed]:
    """The own overrides of a library's methods that use the card and were not called, in classes with an instance.

    Of those that were called, what they did not come to.
    """
    hooks = {cls: found for cls in _own_classes(files) if (found := list(_hooks(cls)))}
    for cls, instance in _instances(set(hooks)):
        for function in hooks[cls]:
            if call := work.call_of(function, [instance], {}):
                yield from _missed(function.__name__, call, files, work)


def _missed(name: str, call: OwnCall, files: ProbedFiles, work: DeviceWork) -> Iterator[Missed]:
    file = files.file_of(call.code)
    entry = next((each for each in call.tree.body if isinstance(each, Probe)), None)
    if file is None or entry is None or isinstance(call.tree, ast.Module):
        return
    if file.hits[entry.index]:
        yield from Unreached(Region(file, call.tree.body, call.conditions), work, files, {call.code}).find()
    elif work.is_in_call(call):
        yield Missed(file, entry.index, NotReached(at=f"{file.name}:{call.tree.lineno}", text=name))


def _own_classes(files: ProbedFiles) -> set[type]:
    modules = [module for module in list(sys.modules.values()) if getattr(module, "__file__", None) in files.names]
    held = (value for module in modules for value in list(vars(module).values()))
    return {value for value in held if isinstance(value, type)}


def _hooks(cls: type) -> Iterator[FunctionType]:
    for name, member in list(vars(cls).items()):
        if isinstance(member, FunctionType) and _is_hook(cls, name):
            yield inspect.unwrap(member)


def _is_hook(cls: type, name: str) -> bool:
    """Whether the method overrides one of a library, and not of torch or Python itself."""
    definers = [base for base in cls.__mro__[1:] if name in vars(base)]
    return bool(definers) and all(module_of(base).partition(".")[0] not in _NO_FRAMEWORKS for base in definers)


def _instances(classes: set[type]) -> Iterator[tuple[type, Any]]:
    """One instance of each of `classes` that has any."""
    for candidate in gc.get_objects() if classes else ():
        if type(candidate) in classes:
            classes.discard(type(candidate))
            yield type(candidate), candidate
