"""What an expression of the person's code stands for at this moment, looked up without running any of it."""

import ast
import builtins
import inspect
from collections.abc import Mapping
from dataclasses import dataclass, field
from types import CellType, FrameType, FunctionType, ModuleType
from typing import Any

from torch import nn

from peaksight.virtual_gpu.frames import variables_of

UNKNOWN: Any = object()
_LOOKS_AT_LOCALS = {"locals", "vars", "dir", "eval", "exec"}


@dataclass(frozen=True)
class Bound:
    """A method and what it is called on."""

    receiver: Any
    function: Any


@dataclass(frozen=True)
class Scope:
    """The names that a piece of code sees, the nearest first."""

    names: Mapping[str, Any]
    around: Mapping[str, Any] = field(default_factory=dict)

    def value(self, node: ast.AST) -> Any:
        """What `node` stands for, UNKNOWN unless it is a constant, a name, or something's attribute or item."""
        match node:
            case ast.Constant():
                return node.value
            case ast.Name():
                return self._name(node.id)
            case ast.Attribute():
                return _attribute(self.value(node.value), node.attr)
            case ast.Subscript(slice=ast.Constant(value=key)):
                return _item(self.value(node.value), key)
        return UNKNOWN

    def _name(self, name: str) -> Any:
        for names in (self.names, self.around, vars(builtins)):
            if name in names:
                return names[name]
        return UNKNOWN


def scope_of_frame(frame: FrameType, tree: ast.AST) -> Scope:
    """The names of `frame`, which runs `tree`; of a function that looks at its own locals only the global ones.

    Reading the variables empties what `locals()` would see.
    """
    if not frame.f_code.co_flags & inspect.CO_OPTIMIZED:
        return Scope(frame.f_locals, frame.f_globals)
    if any(isinstance(node, ast.Name) and node.id in _LOOKS_AT_LOCALS for node in ast.walk(tree)):
        return Scope({}, frame.f_globals)
    return Scope(variables_of(frame), frame.f_globals)


def scope_of_call(function: FunctionType, bound: Mapping[str, Any]) -> Scope:
    """The names that `function` sees when its parameters are `bound`."""
    cells = zip(function.__code__.co_freevars, function.__closure__ or (), strict=False)
    closure = {name: cell.cell_contents for name, cell in cells if _is_filled(cell)}
    return Scope({**closure, **bound}, function.__globals__)


def _is_filled(cell: CellType) -> bool:
    try:
        return cell.cell_contents is not UNKNOWN
    except ValueError:
        return False


def _attribute(owner: Any, name: str) -> Any:
    """The attribute as it is stored: no property and no `__getattr__` is run."""
    if owner is UNKNOWN or isinstance(owner, Bound):
        return UNKNOWN
    if isinstance(owner, ModuleType):
        return vars(owner).get(name, UNKNOWN)
    if isinstance(owner, nn.Module):
        for held in (owner._modules, owner._parameters, owner._buffers):
            if name in held:
                return held[name]
    found = inspect.getattr_static(owner, name, UNKNOWN)
    if found is UNKNOWN:
        return UNKNOWN
    if isinstance(found, (staticmethod, classmethod)):
        found = found.__func__
    if isinstance(owner, type) or not callable(found) or name in getattr(owner, "__dict__", {}):
        return UNKNOWN if _is_computed(found) else found
    return Bound(owner, found)


def _is_computed(found: Any) -> bool:
    return hasattr(type(found), "__get__") and not callable(found)


def _item(owner: Any, key: Any) -> Any:
    if type(owner) in (dict, list, tuple):
        try:
            return owner[key]
        except (LookupError, TypeError):
            pass
    return UNKNOWN


def module_of(function: Any) -> str:
    """The module that defines `function`, or for a method written in C its class; empty if that is not known."""
    return str(getattr(function, "__module__", None) or getattr(getattr(function, "__objclass__", 0), "__module__", ""))
