"""XLA's own compiler for the card, on a machine without one: a deviceless compile."""

import tempfile
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import jax
from jax.extend.core import ClosedJaxpr, jaxpr_as_fun

from peaksight.errors import UnsupportedError
from peaksight.gpus import Card
from peaksight.jax.compiler import COMPILER, Answer, Order, first_line, how_it_ended, is_of_system
from peaksight.jax.dump import CompiledProgram, read_dump
from peaksight.jax.private import callbacks_lowered, module_of, num_devices_of, output_shardings, whole_tracebacks
from peaksight.jax.targets import target_config

# Products in Triton are what XLA's compiler fails at most often; without them it takes those of cuBLAS.
WITHOUT_TRITON = {"xla_gpu_enable_triton_gemm": "False"}


class NoCompiler(Exception):
    """There is no compiler for the card here, or it crashes; the text says why."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Call:
    """A jitted function as it is called: `shardings` has one of each argument, `out_shardings` of each result.

    Shardings are over `jax.devices()` of this process, None where the function leaves it open.
    """

    closed: ClosedJaxpr
    name: str
    donated: tuple[bool, ...]
    shardings: tuple[Any, ...]
    out_shardings: tuple[Any, ...]


def compile_for(card: Card, call: Call, num_devices: int = 1) -> CompiledProgram:
    """What XLA plans for `call` on one of `num_devices` cards.

    Raises:
        NoCompiler: the CUDA plugin is missing, or XLA's compiler crashes.
        UnsupportedError: XLA cannot compile the function for the card.
    """
    target = target_config(card)
    arguments = [
        jax.ShapeDtypeStruct(aval.shape, aval.dtype, sharding=sharding)
        for aval, sharding in zip(call.closed.in_avals, _given_shardings(call), strict=True)
    ]
    asked = {} if all(each is None for each in call.out_shardings) else {"out_shardings": list(call.out_shardings)}
    jitted = jax.jit(_named(call), donate_argnums=_places(call.donated), keep_unused=True, **asked)
    try:
        with whole_tracebacks(), callbacks_lowered():
            lowered = jitted.trace(*arguments).lower(lowering_platforms=("cuda",))
    except Exception as error:
        raise _cannot_compile(call.name, card, first_line(error)) from error
    with tempfile.TemporaryDirectory(prefix="peaksight-xla-") as folder:
        order = Order(
            module=module_of(lowered),
            target=target,
            num_cards=num_devices,
            num_devices=num_devices_of(lowered),
            folder=folder,
        )
        answer = _answer_to(order)
        if answer.is_missing:
            raise NoCompiler(f"the CUDA plugin of JAX is missing or cannot be loaded: {answer.error}")
        if answer.error:
            raise _cannot_compile(call.name, card, answer.error)
        outputs = output_shardings(answer.shardings, order.num_devices, _mesh_of(call))
        return read_dump(Path(folder), output_shardings=outputs)


def _answer_to(order: Order) -> Answer:
    """That of the compiler, once more without Triton where it fails; NoCompiler where it ends instead."""
    answer = COMPILER.plan(order)
    if answer.is_missing or is_of_system(answer.code) or not (answer.error or answer.code):
        again = answer
    else:
        again = COMPILER.plan(replace(order, options=WITHOUT_TRITON))
    if again.code:
        raise NoCompiler(how_it_ended(again.code))
    return again


def _mesh_of(call: Call) -> Any:
    """The mesh that the arguments or results lie on, None without any."""
    meshes = (getattr(each, "mesh", None) for each in (*call.shardings, *call.out_shardings))
    return next((mesh for mesh in meshes if isinstance(mesh, jax.sharding.Mesh)), None)


def _given_shardings(call: Call) -> list[Any]:
    """Those of the arguments; beside a mesh, what no one put anywhere may lie on all its devices."""
    if _mesh_of(call) is None:
        return list(call.shardings)
    return [None if isinstance(each, jax.sharding.SingleDeviceSharding) else each for each in call.shardings]


def _named(call: Call) -> Any:
    function = jaxpr_as_fun(call.closed)

    def program(*arguments: Any) -> Any:
        return function(*arguments)

    program.__name__ = program.__qualname__ = call.name
    return program


def _places(flags: Sequence[bool]) -> tuple[int, ...]:
    return tuple(place for place, flag in enumerate(flags) if flag)


def _cannot_compile(name: str, card: Card, why: str) -> UnsupportedError:
    return UnsupportedError(
        f"Can't compile {name} for a {card.product_name}: {why}. Simulate the training without that part.",
        slug="jax-compile",
    )
