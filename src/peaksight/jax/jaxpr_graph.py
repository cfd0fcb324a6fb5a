"""A program as one graph of values: what equations read and write, with loops and branches as graphs inside a node."""

import math
from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Any

from jax.extend.core import JaxprEqn


class Value:
    """A tensor of the program: `bytes`, its shape as text, and the equation that makes it (None: an argument).

    A value with a `base` is another name for the buffer of that one. `scope` are the name scopes of the calls around.
    """

    __slots__ = ("argument", "base", "bytes", "eqn", "scope", "tensor")

    def __init__(self, aval: Any, eqn: JaxprEqn | None = None, scope: str = "", argument: int = -1) -> None:
        """`argument` is its number among the arguments of the program, -1 of what is computed."""
        self.bytes, self.tensor = bytes_of(aval), tensor_of(aval)
        self.eqn, self.scope, self.argument = eqn, scope, argument
        self.base: Value | None = None

    @property
    def buffer(self) -> "Value":
        """The value whose memory this one is in."""
        return self if self.base is None else self.base.buffer

    def copied(self) -> "Value":
        """Another value of the same kind."""
        other = Value(None, self.eqn, self.scope, self.argument)
        other.bytes, other.tensor = self.bytes, self.tensor
        return other

    def renamed(self) -> "Value":
        """Another value in the same memory."""
        other = self.copied()
        other.base = self
        return other


@dataclass(slots=True, eq=False)
class Node:
    """An equation on values; `bodies` are the graphs that it runs inside (a loop's body, the branches of a `cond`)."""

    name: str
    reads: tuple[Value, ...]
    writes: tuple[Value, ...]
    eqn: JaxprEqn | None = None
    bodies: tuple["Graph", ...] = ()


@dataclass(slots=True, eq=False)
class Graph:
    """Nodes in the order of the program, its `inputs` and its `outputs`.

    Of a graph inside a node both live in buffers around it: `homes` names for an output of a loop's body the input in
    whose buffer it has to end, the carry.
    """

    inputs: list[Value]
    outputs: list[Value]
    nodes: list[Node]
    constants: list[Value] = field(default_factory=list)
    homes: dict[Value, Value] = field(default_factory=dict)


def bytes_of(aval: Any) -> int:
    """What a buffer of this abstract value takes; 0 of tokens and of tangents that are no numbers."""
    shape, dtype = getattr(aval, "shape", None), getattr(aval, "dtype", None)
    if shape is None or dtype is None or str(dtype) == "float0":
        return 0
    return math.prod(shape) * int(dtype.itemsize)


def tensor_of(aval: Any) -> str:
    """`bfloat16[32, 816, 2048]`."""
    shape, dtype = getattr(aval, "shape", None), getattr(aval, "dtype", None)
    return str(aval) if shape is None or dtype is None else f"{dtype}[{', '.join(map(str, shape))}]"


def total_bytes(values: Iterable[Value]) -> int:
    """The sum of their buffers."""
    return sum(value.bytes for value in values)
