"""One call of a jitted function on the virtual card: what it finds, takes and leaves in memory."""

import re
from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cache
from math import prod
from typing import Any

import jax.numpy as jnp
from jax._src.core import jaxprs_in_params
from jax.extend.core import ClosedJaxpr, Jaxpr

from peaksight.gpus import Card
from peaksight.jax.compiling import Call, NoCompiler, compile_for
from peaksight.jax.dump import Buffer, CompiledProgram
from peaksight.jax.entries import Entry, What
from peaksight.jax.gradients import returned_gradients
from peaksight.jax.ledger import Ledger
from peaksight.jax.liveness import liveness
from peaksight.jax.path_names import bare_path
from peaksight.jax.roles import roles_of
from peaksight.records import Role
from peaksight.records.jax_program import Kind

# Where in what a function returns an output is.
_PLACE = re.compile(r"^(\[\d+\])+")


@dataclass(frozen=True, slots=True, kw_only=True)
class Planned:
    """A call with the memory that it was planned to take. `without_compiler` says why XLA did not plan it, if so."""

    call: Call
    paths: tuple[str, ...]
    program: CompiledProgram
    without_compiler: str = ""

    @property
    def trains(self) -> bool:
        """Whether the function differentiates."""
        return differentiates(self.call.closed.jaxpr)


@cache
def differentiates(jaxpr: Jaxpr) -> bool:
    """Whether an equation of `jaxpr`, or of one in it, comes from a backward pass."""
    inner = (each for eqn in jaxpr.eqns for each in jaxprs_in_params(eqn.params))
    is_backward = any("transpose" in str(eqn.source_info.name_stack) for eqn in jaxpr.eqns)
    return is_backward or any(map(differentiates, inner))


def plan(call: Call, card: Card, paths: Sequence[str], num_devices: int = 1) -> Planned:
    """The memory of `call` as XLA plans it for `card`, else as liveness sees it where the compiler is missing."""
    try:
        return Planned(call=call, paths=tuple(paths), program=compile_for(card, call, num_devices))
    except NoCompiler as error:
        return Planned(call=call, paths=tuple(paths), program=_by_liveness(call, paths), without_compiler=str(error))


def arguments_of(planned: Planned) -> list[tuple[int, What]]:
    """The bytes of each argument on one device, and what it is for."""
    call = planned.call
    avals = call.closed.in_avals
    returned = {(aval.shape, aval.dtype) for aval in call.closed.out_avals}
    is_state = [(aval.shape, aval.dtype) in returned for aval in avals]
    if any(call.donated):
        is_state = list(call.donated)
    roles = roles_of(planned.paths, is_state, map(is_floating, avals))
    return [
        (device_bytes(aval, sharding), What(role=role, tensor=tensor_of(aval), module=path))
        for aval, sharding, role, path in zip(avals, call.shardings, roles, planned.paths, strict=True)
    ]


def execute(planned: Planned, arguments: Sequence[Entry | None], ledger: Ledger) -> list[Entry]:
    """Run `planned` on `ledger`: its outputs, of which some are in the memory of donated arguments."""
    program, call = planned.program, planned.call
    aliases = dict(program.aliases)
    given = arguments_of(planned)
    shardings = program.output_shardings or (None,) * len(call.closed.out_avals)
    names = call.closed.jaxpr.debug_info.result_paths or ()
    outputs: dict[int, Entry] = {}
    fresh: list[tuple[int, int, What]] = []
    for place, (aval, sharding) in enumerate(zip(call.closed.out_avals, shardings, strict=True)):
        source = arguments[aliases[place]] if place in aliases else None
        path = bare_path(names[place]).removeprefix("result") if place < len(names) else ""
        what = _output(planned, aval, path, given)
        if planned.trains and place in returned_gradients(call.closed):
            what = replace(what, role=Role.GRADIENT)
        if source is not None and source.chunk is not None:
            outputs[place] = source
            ledger.becomes(source, what)
        else:
            fresh.append((device_bytes(aval, sharding), place, what))
    # XLA numbers a program's allocations by size, and takes them in that order.
    for size, place, what in sorted(fresh, key=lambda each: -each[0]):
        outputs[place] = ledger.allocate(size, what)
    ledger.run(program, call.name, [what for _, what in given], trains=planned.trains)
    for entry, donated in zip(arguments, call.donated, strict=True):
        if donated and entry is not None and entry not in outputs.values():
            ledger.free(entry)
    return [outputs[place] for place in range(len(outputs))]


def _output(planned: Planned, aval: Any, path: str, given: list[tuple[int, What]]) -> What:
    """An output in memory of its own: what the argument like it is for, whose path ends as that in its place."""
    name, tensor = f"{planned.call.name}{path}", tensor_of(aval)
    role = roles_of((path,), (False,), (is_floating(aval),))[0]
    if role is Role.INPUT:
        ending = _PLACE.sub("", path)
        like = [what.role for _, what in given if what.tensor == tensor and what.module.endswith(ending)]
        role = like[0] if like and (ending or len(like) == 1) else Role.UNKNOWN
    return What(role=role, tensor=tensor, module=name, op="output")


def is_floating(aval: Any) -> bool:
    """Whether `aval` holds floating-point numbers."""
    return bool(jnp.issubdtype(aval.dtype, jnp.floating))


def tensor_of(aval: Any) -> str:
    """`float32[8, 512]`."""
    return f"{aval.dtype}{list(aval.shape)}"


def device_bytes(aval: Any, sharding: Any) -> int:
    """The bytes of an array on one device."""
    shape = (
        sharding.shard_shape(aval.shape) if sharding is not None and hasattr(sharding, "shard_shape") else aval.shape
    )
    return prod(shape) * _item_bytes(aval.dtype)


def _item_bytes(dtype: Any) -> int:
    """The size of one number; a random key is as large as the numbers in it."""
    if jnp.issubdtype(dtype, jnp.dtype("O")) or not hasattr(dtype, "_impl"):
        return int(dtype.itemsize)
    return int(prod(dtype._impl.key_shape) * 4)


def _by_liveness(call: Call, paths: Sequence[str]) -> CompiledProgram:
    """The memory of `call` without XLA."""
    seen = liveness(call.closed, donated=call.donated, paths=paths)
    temporary = [value for value in seen.live if value.kind is Kind.TEMPORARY]
    shown = temporary if sum(value.bytes for value in temporary) <= seen.temporary_bytes else []
    buffers = tuple(
        Buffer(
            bytes=value.bytes,
            born=place,
            tensor=value.tensor,
            op_name=f"jit({call.name})/{value.scope}/{value.primitive}",
            source=value.source,
        )
        for place, value in enumerate(reversed(shown))
    )
    return CompiledProgram(
        argument_bytes=seen.argument_bytes,
        output_bytes=seen.output_bytes,
        aliased_bytes=seen.aliased_bytes,
        temporary_bytes=seen.temporary_bytes,
        buffers=buffers,
        unused_bytes=seen.temporary_bytes - sum(buffer.bytes for buffer in buffers),
        aliases=tuple(_aliases(call.closed, call.donated)),
    )


def _aliases(closed: ClosedJaxpr, donated: Sequence[bool]) -> list[tuple[int, int]]:
    """Each output in the first donated argument of its shape and type that no other output has."""
    free = [place for place, flag in enumerate(donated) if flag]
    pairs = []
    for out, aval in enumerate(closed.out_avals):
        same = (place for place in free if _like(closed.in_avals[place], aval))
        if (place := next(same, None)) is not None:
            free.remove(place)
            pairs.append((out, place))
    return pairs


def _like(one: Any, other: Any) -> bool:
    return one.shape == other.shape and one.dtype == other.dtype
