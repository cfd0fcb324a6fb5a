"""What a loop goes through that the person wrote: a generator, or a class around a loader or with one as `__iter__`."""

import ast
import gc
import inspect
from collections.abc import Iterator
from types import CodeType, FrameType, FunctionType, GeneratorType
from typing import Any
from weakref import ref

from torch.utils.data import DataLoader

from peaksight.virtual_gpu.unreached.lengths import below_bar
from peaksight.virtual_gpu.unreached.values import Bound, Scope

# Looking for one goes through every object there is.
_found: dict[CodeType, ref[Any]] = {}


def loaders_in(iterable: ast.expr, scope: Scope) -> Iterator[DataLoader[Any]]:
    """DataLoaders that `iterable` names, as in `log_every(loader, 10)` and `zip(a, b)`, or whose holder it names."""
    for node in ast.walk(iterable):
        value = below_bar(scope.value(node))
        if isinstance(value, DataLoader):
            yield value
        elif _iter_of(type(value)) is not None:
            yield from (held for held in getattr(value, "__dict__", {}).values() if isinstance(held, DataLoader))


def makes_loader(iterable: ast.expr, scope: Scope) -> bool:
    """Whether `iterable` is a DataLoader that is made for this loop alone."""
    made = scope.value(iterable.func) if isinstance(iterable, ast.Call) else None
    return isinstance(made, type) and issubclass(made, DataLoader)


def suspended_generator(iterable: ast.expr, scope: Scope) -> FrameType | None:
    """The frame of the generator that `iterable` made; None where it made none, or several go on."""
    code = _generator_code(iterable, scope)
    if code is None:
        return None
    known = _found[code]() if code in _found else None
    if known is None or not known.gi_suspended:
        goes_on = [each for each in gc.get_referrers(code) if _is_suspended(each, code)]
        if len(goes_on) != 1:
            return None
        _found[code] = ref(known := goes_on[0])
    return known.gi_frame


def _generator_code(iterable: ast.expr, scope: Scope) -> CodeType | None:
    made = scope.value(iterable.func) if isinstance(iterable, ast.Call) else type(scope.value(iterable))
    function = made.function if isinstance(made, Bound) else _iter_of(made) if isinstance(made, type) else made
    if isinstance(function, FunctionType) and inspect.isgeneratorfunction(function):
        return function.__code__
    return None


def _iter_of(kind: type) -> FunctionType | None:
    """The `__iter__` of a class in Python."""
    function = inspect.getattr_static(kind, "__iter__", None)
    return function if isinstance(function, FunctionType) else None


def _is_suspended(generator: Any, code: CodeType) -> bool:
    return isinstance(generator, GeneratorType) and generator.gi_code is code and generator.gi_suspended
