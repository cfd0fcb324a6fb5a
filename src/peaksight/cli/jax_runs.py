"""Runs a script under JAX on a virtual card. torch is not needed."""

import os
import sys
from collections.abc import Callable, Sequence
from contextlib import redirect_stdout
from dataclasses import replace
from io import StringIO
from typing import TYPE_CHECKING

from peaksight.errors import StopSimulation
from peaksight.extras import check_jax
from peaksight.gpus import Room
from peaksight.overlays.seeds import seeded
from peaksight.records import Capture, ScriptCommand, StepPeak
from peaksight.records.plan import Change
from peaksight.virtual_gpu.script import Ending, Scratch, explain, run_script
from peaksight.virtual_gpu.script.environment import variables
from peaksight.virtual_gpu.script.session import trusted

if TYPE_CHECKING:
    from peaksight.jax.script import FactsOf, Session


def simulate_jax(
    command: ScriptCommand,
    room: Room,
    *,
    num_gpus: int = 1,
    max_steps: int | None = None,
    on_step: Callable[[StepPeak], None] | None = None,
    on_compile: Callable[[str, bool], None] | None = None,
    changes: Sequence[Change] = (),
    facts_of: "FactsOf" = "peak",
) -> tuple[Capture, ...]:
    """Run `command` on `num_gpus` virtual cards of `room`: one capture, for under JAX every card holds the same.

    What the pool of a card cannot serve is noted, and the run goes on, so that what the job needs is known.
    `on_compile` hears the name of each function that is about to be compiled, and whether it differentiates. `changes`
    are those of a plan. The captures have facts of the programs `facts_of`.

    Raises:
        PlanError: there is no such change.
        UnsupportedError: JAX is not installed, or the script does what is not simulated.
    """
    check_jax()
    from peaksight.jax.compiler import COMPILER
    from peaksight.jax.pool import environment_of

    given = {**dict(command.environment), **environment_of(changes)}
    with variables(given.items()), variables(host_settings(num_gpus).items()):
        COMPILER.start()
    with variables(given.items()), variables(host_settings(num_gpus).items()), Scratch() as scratch:
        from peaksight.jax.changes import Changes
        from peaksight.jax.script import Session

        session = Session(
            room,
            num_devices=num_gpus,
            max_steps=max_steps,
            on_step=on_step,
            on_compile=on_compile,
            unguarded=trusted,
            changes=Changes(changes),
        )
        finished, ending = _run(command, session)
        masks = tuple(session.masks.empty)
        if session.masks.repairable and not ending.exit_code and facts_of != "nothing":
            again = Session(room, num_devices=num_gpus, max_steps=max_steps, unguarded=trusted, repair_masks=True)
            with redirect_stdout(StringIO()):
                _, of_again = _run(command, again)
            if not of_again.exit_code:
                masks = tuple(replace(mask, was=session.fact, again=again.fact) for mask in masks)
        _explain(ending, scratch)
    return (
        session.capture(
            command.argv,
            finished=finished,
            exit_code=ending.exit_code,
            notes=scratch.notes(),
            writes=scratch.writes(),
            masks=masks,
            facts_of=facts_of,
        ),
    )


def _run(command: ScriptCommand, session: "Session") -> tuple[str, Ending]:
    """Run the script in `session`: how it finished, as `Capture.finished` says it."""
    with session, seeded(0):
        try:
            ending = run_script(command)
        except StopSimulation as stop:
            return stop.reason, Ending(exit_code=0)
        except KeyboardInterrupt:
            return "interrupted", Ending(exit_code=130)
    if ending.was_interrupted:
        return "interrupted", ending
    return "failed" if ending.exit_code else "script", ending


def host_settings(num_gpus: int) -> dict[str, str | None]:
    """What JAX reads when it starts: the host stands in for the cards, and the compiler for them does without any."""
    flags = f"{os.environ.get('XLA_FLAGS', '')} --xla_force_host_platform_device_count={num_gpus}"
    return {"JAX_PLATFORMS": "cpu", "XLA_FLAGS": flags.strip(), "JAX_SKIP_CUDA_CONSTRAINTS_CHECK": "1"}


def _explain(ending: Ending, scratch: Scratch) -> None:
    if ending.exit_code and ending.error is not None:
        explained = explain(ending.error, scratch.refused_hosts())
        if explained is not None:
            print(f"peaksight: {explained} See docs/messages.md#{explained.slug}.", file=sys.stderr)
