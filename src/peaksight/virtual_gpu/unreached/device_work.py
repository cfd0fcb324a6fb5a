"""Whether code that has not run would use the card, by what its names stand for now."""

import ast
import inspect
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from functools import cache
from types import BuiltinFunctionType, CodeType, FunctionType, MethodType, ModuleType
from typing import Any

import torch
from torch import nn

from peaksight.virtual_gpu.torch_private import FakeTensor
from peaksight.virtual_gpu.unreached.conditions import Conditions, assigned
from peaksight.virtual_gpu.unreached.probed_files import Tree
from peaksight.virtual_gpu.unreached.values import UNKNOWN, Bound, Scope, module_of, scope_of_call

_Definition = (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef, ast.Lambda)
# Methods of nn.Module that put something on the card; its others are bookkeeping.
_MOVES_MODULE = {"to", "cuda", "half", "float", "double", "bfloat16", "to_empty", "forward", "__call__"}
# What begins the names of methods that tell, ask or note something.
_TELLS = set("print log info debug warning error is has get set add wait register".split())


@dataclass(frozen=True)
class OwnCall:
    """A function of the person's as it is called: its code, its source, and what its names stand for."""

    code: CodeType
    tree: Tree
    conditions: Conditions


class DeviceWork:
    """Judges code; `tree_of` gives the source of the functions that are to be looked into."""

    def __init__(self, tree_of: Callable[[CodeType], Tree | None]) -> None:
        """Functions without a tree are libraries'."""
        self._tree_of = tree_of
        self._open: set[CodeType] = set()

    def is_in(self, statement: ast.AST, conditions: Conditions) -> bool:
        """Whether something in `statement`, or in own functions that it calls, uses the card."""
        return any(self._is_work(node, conditions.scope) for node in _walk(statement, conditions))

    def is_in_call(self, call: "OwnCall") -> bool:
        """Whether an own function uses the card when it is called so; not a second time inside itself."""
        if call.code in self._open:
            return False
        self._open.add(call.code)
        try:
            return any(self.is_in(statement, call.conditions) for statement in call.tree.body)
        finally:
            self._open.discard(call.code)

    def own_call(self, call: ast.Call, scope: Scope) -> "OwnCall | None":
        """What `call` runs if that is a function of the person's."""
        function, receiver = _opened(scope.value(call.func))
        arguments = [] if receiver is UNKNOWN else [receiver]
        arguments += [scope.value(argument) for argument in call.args]
        named = {keyword.arg: scope.value(keyword.value) for keyword in call.keywords if keyword.arg}
        return self.call_of(function, arguments, named) if isinstance(function, FunctionType) else None

    def call_of(self, function: FunctionType, arguments: list[Any], named: Mapping[str, Any]) -> "OwnCall | None":
        """The call of `function`, None if it is not the person's; a number given to it is another one the next time."""
        tree = self._tree_of(function.__code__)
        if tree is None:
            return None
        bound = _bind(function, arguments, named)
        names, attributes = assigned([tree])
        numbers = {name for name, value in bound.items() if type(value) in (int, float)}
        conditions = Conditions(scope_of_call(function, bound), names | numbers, attributes)
        return OwnCall(function.__code__, tree, conditions)

    def _is_work(self, node: ast.AST, scope: Scope) -> bool:
        match node:
            case ast.Call():
                return self._is_working_call(node, scope)
            case ast.BinOp(left, _, right):
                return _is_data(scope.value(left)) or _is_data(scope.value(right))
        return False

    def _is_working_call(self, call: ast.Call, scope: Scope) -> bool:
        function, receiver = _opened(scope.value(call.func))
        given = [scope.value(argument) for argument in [*call.args, *(keyword.value for keyword in call.keywords)]]
        if function is UNKNOWN:
            return _unknown_works(call, given)
        if isinstance(function, nn.Module) or function is _opened(torch.save)[0]:
            return True
        if own := self.own_call(call, scope):
            return self.is_in_call(own)
        if module_of(function) == "builtins":
            return False
        if receiver is not UNKNOWN and not _is_of_torch(function):
            return _library_works(receiver, getattr(function, "__name__", "")) or any(map(_is_on_device, given))
        if isinstance(receiver, (torch.Tensor, nn.Module, torch.optim.Optimizer)):
            return _method_works(receiver, getattr(function, "__name__", ""), given)
        if _is_of_torch(function):
            return _torch_works(function, call, given, scope)
        return any(map(_is_on_device, given))


def _opened(function: Any) -> tuple[Any, Any]:
    """The function behind decorators, and what it is bound to."""
    receiver = UNKNOWN
    if isinstance(function, Bound):
        function, receiver = function.function, function.receiver
    elif isinstance(function, (MethodType, BuiltinFunctionType)) and not isinstance(function.__self__, ModuleType):
        function, receiver = getattr(function, "__func__", function), function.__self__
    return inspect.unwrap(function) if isinstance(function, FunctionType) else function, receiver


def _walk(node: ast.AST, conditions: Conditions | None = None) -> Iterator[ast.AST]:
    """`node` and what is below it, without the inside of definitions, and without branches that are never taken."""
    yield node
    for child in _live_children(node, conditions):
        if not isinstance(child, _Definition):
            yield from _walk(child, conditions)


def _live_children(node: ast.AST, conditions: Conditions | None) -> Iterable[ast.AST]:
    if isinstance(node, (ast.If, ast.IfExp)) and conditions is not None:
        outcome = conditions.outcome(node.test)
        if outcome is not None:
            taken = node.body if outcome else node.orelse
            return taken if isinstance(taken, list) else [taken]
    return ast.iter_child_nodes(node)


def _bind(function: FunctionType, arguments: list[Any], named: Mapping[str, Any]) -> dict[str, Any]:
    """The parameters of `function` that have a value."""
    parameters = function.__code__.co_varnames[: function.__code__.co_argcount]
    defaults = dict(zip(reversed(parameters), reversed(function.__defaults__ or ()), strict=False))
    given = dict(zip(parameters, arguments, strict=False))
    return {**defaults, **(function.__kwdefaults__ or {}), **given, **named}


def _is_on_device(value: Any) -> bool:
    """A model, an optimizer, or more than a number on the card."""
    return isinstance(value, (nn.Module, torch.optim.Optimizer)) or _is_data(value)


def _is_data(value: Any) -> bool:
    return isinstance(value, FakeTensor) and value.fake_device.type == "cuda" and value.numel() > 1


def _library_works(receiver: Any, method: str) -> bool:
    """Whether a library's object has something of the card, as a trainer or an accelerator, and works with it."""
    if method.partition("_")[0] in _TELLS:
        return False
    held = list(_held(receiver))
    library = _library_of(receiver)
    parts = [each for each in held if library and _library_of(each) == library]
    return any(map(_is_on_device, held)) or any(_is_on_device(each) for part in parts for each in _held(part))


def _held(holder: Any) -> Iterator[Any]:
    for each in list(getattr(holder, "__dict__", {}).values()):
        yield from each if type(each) in (list, tuple) else [each]


def _library_of(value: Any) -> str:
    return module_of(type(value)).partition(".")[0]


def _unknown_works(call: ast.Call, given: list[Any]) -> bool:
    """Also what a library does with what an override hands on to it."""
    name = getattr(call.func, "attr", "")
    if isinstance(owner := getattr(call.func, "value", None), ast.Call) and getattr(owner.func, "id", "") == "super":
        return bool(given)
    return name in ("backward", "cuda") or any(_is_on_device(value) or _is_the_card(value) for value in given)


def _is_the_card(value: Any) -> bool:
    return isinstance(value, (str, torch.device)) and str(value).partition(":")[0] == "cuda"


def _method_works(receiver: Any, name: str, given: list[Any]) -> bool:
    if isinstance(receiver, nn.Module):
        return name in _MOVES_MODULE
    if isinstance(receiver, torch.optim.Optimizer):
        return name == "step"
    if name in ("backward", "cuda") or any(map(_is_the_card, given)):
        return True
    return _is_data(receiver) and _makes_tensors(name)


def _torch_works(function: Any, call: ast.Call, given: list[Any], scope: Scope) -> bool:
    """A function of torch works on what is on the card, and one of its kernels on what is not known yet."""
    if isinstance(function, type):
        return False
    mentioned = (scope.value(node) for argument in [*call.args, *call.keywords] for node in _walk(argument))
    is_kernel = isinstance(function, BuiltinFunctionType) or function.__module__ == "torch.nn.functional"
    return any(_is_on_device(value) or _is_the_card(value) for value in mentioned) or (
        is_kernel and any(value is UNKNOWN for value in given)
    )


def _is_of_torch(function: Any) -> bool:
    return module_of(function).partition(".")[0] == "torch"


@cache
def _makes_tensors(name: str) -> bool:
    """Whether the operator behind a method may have a result that is no view, and is a tensor."""
    packet = getattr(torch.ops.aten, name, None)
    schemas = [getattr(packet, overload)._schema for overload in packet.overloads()] if packet else []
    results = (result for schema in schemas for result in schema.returns)
    return any(result.alias_info is None and "Tensor" in str(result.type) for result in results)
