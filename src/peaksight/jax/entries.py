"""An array on the card, and what it is for, as reports name it."""

from collections.abc import Sequence
from dataclasses import dataclass

from peaksight.allocator.bfc import Chunk
from peaksight.jax.dump import Buffer
from peaksight.jax.roles import place_of
from peaksight.records import Allocation, Role


@dataclass(slots=True, kw_only=True)
class Entry:
    """An array on the card: what its allocation will say, and its chunk, None where the pool had none for it."""

    birth: Allocation
    chunk: Chunk | None


@dataclass(frozen=True, slots=True, kw_only=True)
class What:
    """What an array is for, as reports name it."""

    role: Role
    tensor: str
    op: str = ""
    module: str = ""
    source: str = ""
    library: str = ""


def what_of(buffer: Buffer, arguments: Sequence[What]) -> What:
    """What a piece of temporary memory is for: in a backward pass what has a parameter's shape is a gradient."""
    module, op = place_of(buffer.op_name)
    if buffer.argument >= 0:
        module, op = arguments[buffer.argument].module, "copy"
    shapes = {_shape(what.tensor) for what in arguments if what.role is Role.PARAMETER}
    is_gradient = "transpose(" in buffer.op_name and _shape(buffer.tensor) in shapes
    role = Role.GRADIENT if is_gradient else Role.UNMARKED
    return What(role=role, tensor=buffer.tensor, op=op, module=module, source=buffer.source)


def _shape(tensor: str) -> str:
    """The part of `f32[8, 512]` that is no type, without blanks."""
    return tensor.partition("[")[2].replace(" ", "")
