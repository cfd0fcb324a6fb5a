"""What the mode does with the calls of an operator, found once for each."""

from collections.abc import Callable
from dataclasses import dataclass
from functools import cache
from typing import Any

import torch

from peaksight.virtual_gpu.kernels.custom_functions import function_of
from peaksight.virtual_gpu.kernels.torch_private import composite
from peaksight.virtual_gpu.tensors.calls import is_taken_apart, writes_first
from peaksight.virtual_gpu.tensors.drawing import draws
from peaksight.virtual_gpu.tensors.in_place import OPERATORS
from peaksight.virtual_gpu.torch_private import layout_of

Steps = Callable[..., Any]
ShapeRule = Callable[..., Any]


@dataclass(frozen=True, slots=True)
class Rules:
    """What a call is replaced by (`steps`), and what tells of its results in place of a fake kernel (`shape`)."""

    steps: Steps | None
    shape: ShapeRule | None


@dataclass(frozen=True, slots=True)
class Operator:
    """`on_sparse` are the rules for calls with a sparse argument, None where they are those `on_dense`."""

    on_dense: Rules
    on_sparse: Rules | None
    may_be_in_place: bool
    draws: bool
    is_overload: bool
    writes_first: bool

    def rules_for(self, args: tuple[Any, ...]) -> Rules:
        """The rules of a call with these arguments."""
        return self.on_dense if self.on_sparse is None or not any(map(_is_sparse, args)) else self.on_sparse


class Operators:
    """The operators of one run, by what it has rules for.

    `steps` maps an operator to what the card runs in its place, which returns NotImplemented for a call that is one
    kernel; `shapes` maps the name of one whose output size depends on values to its rule. `sparse_steps` and
    `sparse_shapes` are those for calls with a sparse argument.
    """

    def __init__(
        self,
        steps: dict[Any, Steps],
        shapes: dict[str, ShapeRule],
        sparse_steps: dict[Any, Steps],
        sparse_shapes: dict[str, ShapeRule],
    ) -> None:
        """An operator is looked up where it is first called: `steps` may get more until then."""
        self._steps, self._shapes = steps, shapes
        self._sparse_steps, self._sparse_shapes = sparse_steps, sparse_shapes
        self.of = cache(self._of)

    def _of(self, func: Any) -> Operator:
        name = func.name()
        dense = Rules(self._find_steps(func, name), self._shapes.get(name))
        is_overload = isinstance(func, torch._ops.OpOverload)
        return Operator(
            on_dense=dense,
            on_sparse=self._on_sparse(func, name, dense),
            may_be_in_place=func in OPERATORS,
            draws=draws(func),
            is_overload=is_overload,
            writes_first=is_overload and writes_first(func),
        )

    def _on_sparse(self, func: Any, name: str, dense: Rules) -> Rules | None:
        if func not in self._sparse_steps and name not in self._sparse_shapes:
            return None
        return Rules(self._sparse_steps.get(func, dense.steps), self._sparse_shapes.get(name, dense.shape))

    def _find_steps(self, func: Any, name: str) -> Steps | None:
        if func in self._steps:
            return self._steps[func]
        if is_taken_apart(func):
            return composite(func) if name not in self._shapes and name not in self._sparse_shapes else None
        return function_of(func)


def _is_sparse(value: Any) -> bool:
    return isinstance(value, torch.Tensor) and layout_of(value) is torch.sparse_coo
