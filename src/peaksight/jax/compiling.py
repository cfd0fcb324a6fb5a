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
from peaksight.jax.targets import target_config

_DUMP = {"xla_dump_hlo_as_text": True}


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
    try:
        return topologies.get_topology_desc(
            platform="cuda", target_config=target_config(card), topology=f"1x1x{num_devices}"
        )
    except Exception as error:
        raise NoCompiler(_first_line(error)) from error


def compile_for(card: Card, call: Call, num_devices: int = 1) -> CompiledProgram:
    """What XLA plans for `call` on one of `num_devices` cards.

    Raises:
        NoCompiler: the CUDA plugin is missing.
        UnsupportedError: XLA cannot compile the function for the card.
    """
    devices = topology_of(card, num_devices).devices
    arguments = [
        jax.ShapeDtypeStruct(var.aval.shape, var.aval.dtype, sharding=_moved(sharding, devices))
        for var, sharding in zip(call.closed.jaxpr.invars, call.shardings, strict=True)
    ]
    moved = tuple(None if each is None else _moved(each, devices) for each in call.out_shardings)
    if all(each is None for each in moved):
        moved = None  # type: ignore[assignment]
    jitted = jax.jit(
        _named(call), donate_argnums=_places(call.donated), keep_unused=True, **({"out_shardings": moved} if moved else {})
    )
    with tempfile.TemporaryDirectory(prefix="peaksight-xla-") as folder:
        try:
            compiled = jitted.lower(*arguments).compile(compiler_options={"xla_dump_to": folder, **_DUMP})
        except Exception as error:
            raise _cannot_compile(call.name, card, error) from error
        sizes = compiled.memory_analysis()
        outputs = tuple(_home(each, devices) for each in jax.tree.leaves(compiled.output_shardings))
        return read_dump(Path(folder), sizes, output_shardings=outputs)


def _named(call: Call) -> Any:
    function = jaxpr_as_fun(call.closed)

    def program(*arguments: Any) -> Any:
        return function(*arguments)

    program.__name__ = program.__qualname__ = call.name
    return program


def _places(flags: Sequence[bool]) -> tuple[int, ...]:
    return tuple(place for place, flag in enumerate(flags) if flag)


def _moved(sharding: Any, devices: Sequence[Any]) -> Any:
    """`sharding` over the virtual cards: a device of this process becomes the one of its number."""
    if isinstance(sharding, jax.sharding.NamedSharding):
        mesh = sharding.mesh
        numbers = [device.id for device in mesh.devices.flat]
        moved = jax.sharding.Mesh(_like(mesh.devices, [devices[number] for number in numbers]), mesh.axis_names)
        return jax.sharding.NamedSharding(moved, sharding.spec)
    return jax.sharding.SingleDeviceSharding(devices[0])


def _home(sharding: Any, devices: Sequence[Any]) -> Any:
    """`sharding` over the devices of this process."""
    own = jax.devices()
    if isinstance(sharding, jax.sharding.NamedSharding):
        places = {device: place for place, device in enumerate(devices)}
        moved = [own[places[device]] for device in sharding.mesh.devices.flat]
        mesh = jax.sharding.Mesh(_like(sharding.mesh.devices, moved), sharding.mesh.axis_names)
        return jax.sharding.NamedSharding(mesh, sharding.spec)
    return jax.sharding.SingleDeviceSharding(own[0])


def _like(array: Any, items: Sequence[Any]) -> Any:
    """`items` in the shape of the object array `array`."""
    moved = array.copy()
    moved.flat[:] = items
    return moved


def _cannot_compile(name: str, card: Card, error: Exception) -> UnsupportedError:
    return UnsupportedError(
        f"Can't compile {name} for a {card.product_name}: {_first_line(error)}. "
        "Simulate the training without that part.",
        slug="jax-compile",
    )


def _first_line(error: Exception) -> str:
    return (str(error).strip().splitlines() or [type(error).__name__])[0].rstrip(".")
