"""XLA's own compiler for the card, on a machine without one: a deviceless compile."""

import os
import tempfile
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

import jax
from jax.experimental import topologies
from jax.extend.core import ClosedJaxpr, jaxpr_as_fun

from peaksight.errors import UnsupportedError
from peaksight.gpus import Card
from peaksight.jax.dump import CompiledProgram, read_dump
from peaksight.jax.private import callbacks_lowered, compile_lowered, num_devices_of, output_shardings, whole_tracebacks
from peaksight.jax.targets import target_config


class NoCompiler(Exception):
    """There is no compiler for the card here; the text says why."""


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


@cache
def topology_of(card: Card, num_devices: int = 1) -> Any:
    """The devices of `num_devices` virtual cards; NoCompiler without the CUDA plugin."""
    os.environ.setdefault("JAX_SKIP_CUDA_CONSTRAINTS_CHECK", "1")
    target = target_config(card)
    try:
        return topologies.get_topology_desc(platform="cuda", target_config=target, topology=f"1x1x{num_devices}")
    except Exception as error:
        raise NoCompiler(_first_line(error)) from error


def compile_for(card: Card, call: Call, num_devices: int = 1) -> CompiledProgram:
    """What XLA plans for `call` on one of `num_devices` cards.

    Raises:
        NoCompiler: the CUDA plugin is missing.
        UnsupportedError: XLA cannot compile the function for the card.
    """
    topology = topology_of(card, num_devices)
    arguments = [
        jax.ShapeDtypeStruct(aval.shape, aval.dtype, sharding=sharding)
        for aval, sharding in zip(call.closed.in_avals, _given_shardings(call), strict=True)
    ]
    asked = {} if all(each is None for each in call.out_shardings) else {"out_shardings": list(call.out_shardings)}
    jitted = jax.jit(_named(call), donate_argnums=_places(call.donated), keep_unused=True, **asked)
    with tempfile.TemporaryDirectory(prefix="peaksight-xla-") as folder:
        try:
            with whole_tracebacks(), callbacks_lowered():
                lowered = jitted.trace(*arguments).lower(lowering_platforms=("cuda",))
            executable = compile_lowered(lowered, topology.devices, Path(folder))
        except Exception as error:
            raise _cannot_compile(call.name, card, error) from error
        outputs = output_shardings(executable, num_devices_of(lowered), _mesh_of(call))
        return read_dump(Path(folder), executable.get_compiled_memory_stats(), output_shardings=outputs)


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


def _cannot_compile(name: str, card: Card, error: Exception) -> UnsupportedError:
    return UnsupportedError(
        f"Can't compile {name} for a {card.product_name}: {_first_line(error)}. "
        "Simulate the training without that part.",
        slug="jax-compile",
    )


def _first_line(error: Exception) -> str:
    return (str(error).strip().splitlines() or [type(error).__name__])[0].rstrip(".")
