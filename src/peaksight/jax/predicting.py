"""The peak of one jitted function, called once with arguments that have only shapes."""

import sys
import time
from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import jax

from peaksight.gpus import Room
from peaksight.jax.compiled_fixes import with_compiled
from peaksight.jax.compiling import Call
from peaksight.jax.equinox_names import name_equinox_arguments, take_shapes
from peaksight.jax.execution import Planned, arguments_of, execute, plan
from peaksight.jax.facts import program_of
from peaksight.jax.ledger import Ledger
from peaksight.jax.module_scopes import scope_modules
from peaksight.jax.nnx_names import name_nnx_states
from peaksight.jax.notes import Notes
from peaksight.jax.pool import pool_on
from peaksight.jax.private import traced_of
from peaksight.jax.source_lines import defined_at
from peaksight.jax.tracing import call_of, cannot_trace, paths_of
from peaksight.overlays.patches import Patches
from peaksight.records import Capture, Versions
from peaksight.records.jax_program import JaxProgram, PoolFact


def capture_of_call(
    fn: Any, args: Sequence[Any], room: Room, *, num_devices: int | None = None, **jit_options: Any
) -> Capture:
    """One call of `fn` on the card of `room`.

    Args:
        args: Arrays, `jax.ShapeDtypeStruct`s or trees of them; those with a sharding over several devices are split.
        jit_options: What `jax.jit` takes; a function that is jitted already has its own.

    Raises:
        UnsupportedError: the function cannot be traced, or not compiled for the card.
    """
    started = time.perf_counter()
    call, notes = traced_call(fn, args, jit_options), Notes()
    num_devices = num_devices or devices_of(call)
    planned = plan(call, room.card, paths_of(call.closed), num_devices)
    ledger = Ledger(pool_on(room))
    ledger.step = 1
    entries = [ledger.allocate(size, what) for size, what in arguments_of(planned)]
    notes.planned(planned)
    execute(planned, entries, ledger)
    ledger.end_step()
    return ledger.capture(
        sys.argv[:1] or ("predict",),
        room,
        started,
        versions=Versions(installed=f"jax {jax.__version__}", device_rules=tier_of(planned)),
        not_simulated=notes.approximations(ledger.peak_bytes),
        finished="script",
        script_exit=0,
        programs=(with_compiled(program_at_peak(planned, room), planned, room.card, num_devices),),
    )


def traced_call(fn: Any, args: Sequence[Any], jit_options: dict[str, Any]) -> Call:
    """`fn` traced with `args`; UnsupportedError with the tracer's own first line where that fails."""
    jitted = fn if hasattr(fn, "lower") else jax.jit(fn, **jit_options)
    try:
        return call_of(_traced(jitted, args), args)
    except Exception as error:
        raise cannot_trace(fn, error) from error


def _traced(jitted: Any, args: Sequence[Any]) -> Any:
    """The `jax.stages.Traced` within what `jax.jit`, `nnx.jit` or `eqx.filter_jit` made, with its paths."""
    with Patches() as patches:
        name_nnx_states(patches)
        name_equinox_arguments(patches)
        take_shapes(patches)
        scope_modules(patches)
        return traced_of(jitted, args)


def devices_of(call: Call) -> int:
    """How many devices the arguments are spread over."""
    meshes = [sharding.mesh for sharding in call.shardings if isinstance(sharding, jax.sharding.NamedSharding)]
    return max((mesh.size for mesh in meshes), default=1)


def tier_of(planned: Planned) -> str:
    """Whose plan of the memory it is, as the report names it."""
    return "liveness" if planned.without_compiler else f"XLA of jaxlib {jax.lib.__version__}"


def program_at_peak(planned: Planned, room: Room) -> JaxProgram:
    """The facts that rules read, with what XLA planned in place of what liveness estimates."""
    pool = pool_on(room)
    fact = PoolFact(
        total_bytes=room.card.total_bytes,
        fraction=pool.fraction,
        preallocates=pool.preallocates,
        others_bytes=room.others_bytes,
    )
    call = planned.call
    meshes = [each.mesh for each in call.shardings if isinstance(each, jax.sharding.NamedSharding)]
    return replace(
        program_of(call.closed, donated=call.donated, paths=planned.paths, name=call.name),
        pool=fact,
        at=defined_at(call.closed),
        trains=planned.trains,
        mesh_size=max((mesh.size for mesh in meshes), default=0),
    )
