"""JAX's private names, in one place: what a traced function knows, and its compiler without a device."""

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from functools import wraps
from pathlib import Path
from typing import Any

import jax
import numpy as np
from jax import stages
from jax._src import compiler, core, pjit
from jax._src.interpreters import mlir
from jax._src.lax import lax
from jax._src.lib.mlir import ir
from jax._src.sharding_impls import GSPMDSharding, _gspmd_to_named_sharding_via_mesh
from jaxlib import _jax

from peaksight.overlays.patches import Patches


def module_of(lowered: Any) -> bytes:
    """The StableHLO of a `jax.stages.Lowered`, as bytecode."""
    return bytes(mlir.module_to_bytecode(lowered.compiler_ir()))


def compile_module(
    module: bytes, num_devices: int, devices: Sequence[Any], dump: Path, options: Mapping[str, str]
) -> Any:
    """The executable of a StableHLO `module` for the first of `devices`, which need not exist; XLA writes to `dump`.

    What it was lowered for does not matter: a module knows how many devices it has, and not which.
    """
    client = devices[0].client
    asked = compiler.get_compile_options(
        num_replicas=1,
        num_partitions=num_devices,
        device_assignment=np.arange(num_devices).reshape(1, num_devices),
        env_options_overrides={"xla_dump_to": str(dump), "xla_dump_hlo_as_text": "True", **options},
        backend=client,
    )
    with mlir.make_ir_context():
        return client.compile(ir.Module.parse(module), _jax.DeviceList(tuple(devices[:num_devices])), asked)


@contextmanager
def whole_tracebacks() -> Iterator[None]:
    """Operations keep every frame that they come from: libraries take up the ten that JAX keeps of itself."""
    before = jax.config.jax_traceback_in_locations_limit
    jax.config.update("jax_traceback_in_locations_limit", -1)
    try:
        yield
    finally:
        jax.config.update("jax_traceback_in_locations_limit", before)


@contextmanager
def callbacks_lowered() -> Iterator[None]:
    """Callbacks to Python can be lowered for a card that is not there: only the platform of the client is asked for."""
    before = mlir.ModuleContext.get_backend
    mlir.ModuleContext.get_backend = lambda self, optional=False: None
    try:
        yield
    finally:
        mlir.ModuleContext.get_backend = before


def output_shardings(given: Sequence[Any], num_devices: int, mesh: Any = None) -> tuple[Any, ...]:
    """How outputs sharded as `given` lie on the devices of this process, on `mesh` if any; empty for one device."""
    if num_devices == 1:
        return ()
    devices = tuple(jax.devices()[:num_devices])
    found = (GSPMDSharding(devices, each) for each in given)
    return tuple(each if mesh is None else _gspmd_to_named_sharding_via_mesh(each, mesh) for each in found)


def at_top_level(function: Callable[..., Any]) -> Callable[..., Any]:
    """`function`, which refuses to run inside of a trace, in JAX's own trace of a script."""

    @wraps(function)
    def called(*args: Any, **kwargs: Any) -> Any:
        with core.set_current_trace(core.eval_trace):
            return function(*args, **kwargs)

    return called


def watch_full_like(patches: Patches, made_like: Callable[[Any, Any], Any | None]) -> None:
    """Have `jnp.zeros_like(x)` and the like give `made_like(x, dtype)` where that is something, outside of jit."""
    full_like = lax.full_like

    @wraps(full_like)
    def watched(x: Any, fill_value: Any, dtype: Any = None, shape: Any = None, **options: Any) -> Any:
        made = made_like(x, dtype) if shape is None and options.get("sharding") is None else None
        return full_like(x, fill_value, dtype, shape, **options) if made is None else made

    patches.set(lax, "full_like", watched)


def num_devices_of(lowered: Any) -> int:
    """How many devices a `jax.stages.Lowered` is for."""
    return int(lowered._lowering.compile_args["num_devices"])


def pjit_parameters(traced: Any) -> dict[str, Any]:
    """Those of the `pjit` equation that calling a `jax.stages.Traced` would make."""
    return traced._params


class _Lowering(Exception):
    """The `jax.stages.Traced` that is about to be lowered."""


def traced_of(jitted: Any, args: Sequence[Any]) -> Any:
    """What `jitted.lower(*args)` traces, whichever library wraps that of JAX."""

    def stop(traced: Any, **_: Any) -> None:
        raise _Lowering(traced)

    with Patches() as patches:
        patches.set(stages.Traced, "lower", stop)
        try:
            jitted.lower(*args)
        except _Lowering as found:
            return found.args[0]
    raise TypeError(f"{type(jitted).__name__} is not made by jax.jit")


def call_traced(traced: Any, leaves: Sequence[Any]) -> Any:
    """What the function of a `jax.stages.Traced` gives for `leaves`, by the trace in force."""
    return pjit.jit_p.bind(*traced._consts, *leaves, **traced._params)


def scan_counts(parameters: Mapping[str, Any]) -> tuple[int, int]:
    """How many constants and how much of a carry a `scan` equation has: 0.11 keeps trees of them."""
    if "num_consts" in parameters:
        return parameters["num_consts"], parameters["num_carry"]
    constants, carry, _ = parameters["ft_in"].unpack()
    return len(list(constants)), len(list(carry))
