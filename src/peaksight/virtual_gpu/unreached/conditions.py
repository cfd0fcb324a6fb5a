"""Code with what its names stand for: whether a branch in it may still be taken, or is settled by an `args.amp`."""

import ast
import operator
from collections.abc import Callable, Iterable, Set
from typing import Any

from peaksight.virtual_gpu.unreached.values import UNKNOWN, Bound, Scope, module_of

_SETTLED_CALLS = ("builtins", "torch.cuda", "torch.distributed", "os")
_COMPARISONS: dict[type[ast.cmpop], Callable[[Any, Any], Any]] = {
    ast.Is: operator.is_,
    ast.IsNot: operator.is_not,
    ast.Eq: operator.eq,
    ast.NotEq: operator.ne,
    ast.Lt: operator.lt,
    ast.LtE: operator.le,
    ast.Gt: operator.gt,
    ast.GtE: operator.ge,
}


class Conditions:
    """The conditions of code that assigns the names `changing` and the attributes `changing_attributes` as it runs."""

    def __init__(self, scope: Scope, changing: Set[str], changing_attributes: Set[str] = frozenset()) -> None:
        """Any other name or attribute keeps the value that `scope` has for it."""
        self.scope = scope
        self._changing = changing
        self._changing_attributes = changing_attributes

    def is_settled(self, test: ast.expr) -> bool:
        """Whether `test` has the same outcome whenever it is asked."""
        return not self._may_change(test) or self.outcome(test) is not None

    def outcome(self, test: ast.expr) -> bool | None:
        """What `test` always is, None if that is not known."""
        match test:
            case ast.BoolOp():
                outcomes = [self.outcome(value) for value in test.values]
                decisive = isinstance(test.op, ast.Or)
                if decisive in outcomes or None not in outcomes:
                    return decisive if decisive in outcomes else not decisive
                return None
            case ast.UnaryOp(op=ast.Not(), operand=operand):
                outcome = self.outcome(operand)
                return None if outcome is None else not outcome
            case ast.Compare(left=left, ops=[compared], comparators=[right]) if type(compared) in _COMPARISONS:
                return self._comparison(type(compared), left, right)
        value = self._settled_value(test)
        return bool(value) if _is_flag(value) else None

    def _comparison(self, kind: type[ast.cmpop], left: ast.expr, right: ast.expr) -> bool | None:
        sides = self._settled_value(left), self._settled_value(right)
        is_known = (
            all(side is not UNKNOWN for side in sides) if kind in (ast.Is, ast.IsNot) else all(map(_is_flag, sides))
        )
        try:
            return bool(_COMPARISONS[kind](*sides)) if is_known else None
        except TypeError:
            return None

    def _settled_value(self, node: ast.expr) -> Any:
        return UNKNOWN if self._may_change(node) else self.scope.value(node)

    def _may_change(self, node: ast.AST) -> bool:
        match node:
            case ast.Name(id=name):
                return name in self._changing or _is_open(self.scope.value(node))
            case ast.Attribute(value=owner, attr=name):
                return name in self._changing_attributes or _counts(name) or self._part_may_change(owner, node)
            case ast.Subscript(value=owner, slice=ast.Constant()):
                return self._part_may_change(owner, node)
            case ast.Call() if not self._answers_alike(node):
                return True
            case ast.NamedExpr() | ast.Await() | ast.Yield():
                return True
        return any(map(self._may_change, ast.iter_child_nodes(node)))

    def _part_may_change(self, owner: ast.expr, part: ast.expr) -> bool:
        """An attribute or item: a property, of which nothing is known, may be anything the next time."""
        root = owner
        while isinstance(root, (ast.Attribute, ast.Subscript)):
            root = root.value
        return not isinstance(root, ast.Name) or root.id in self._changing or _is_open(self.scope.value(part))

    def _answers_alike(self, call: ast.Call) -> bool:
        function = self.scope.value(call.func)
        known = function is not UNKNOWN and not isinstance(function, Bound)
        return known and module_of(function).startswith(_SETTLED_CALLS)


def assigned(nodes: Iterable[ast.AST]) -> tuple[set[str], set[str]]:
    """The names and the attributes that the code below `nodes` assigns."""
    below = (node for top in nodes for node in ast.walk(top))
    stores = [node for node in below if isinstance(getattr(node, "ctx", None), ast.Store)]
    names = {node.id for node in stores if isinstance(node, ast.Name)}
    return names, {node.attr for node in stores if isinstance(node, ast.Attribute)}


def _counts(attribute: str) -> bool:
    """Whether an attribute's name is that of a counter, which a library moves on: `state.global_step`."""
    return attribute.rpartition("_")[2] in ("step", "epoch", "iter", "iteration")


def _is_flag(value: Any) -> bool:
    return value is None or type(value) in (bool, int, float, str)


def _is_open(value: Any) -> bool:
    """Not known, or a container that may be filled and emptied."""
    return value is UNKNOWN or isinstance(value, (list, dict, set))
