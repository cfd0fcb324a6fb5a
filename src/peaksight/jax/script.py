"""A script under JAX on the virtual card, from its first line to the capture."""

import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager, nullcontext
from dataclasses import replace
from types import TracebackType
from typing import Any, Literal, Self

import jax

from peaksight.gpus import Room
from peaksight.jax.ahead_of_time import compile_for_the_card
from peaksight.jax.arrays import fetched
from peaksight.jax.changes import Changes
from peaksight.jax.checkpoints import without_checkpoint_files
from peaksight.jax.compiled_fixes import with_compiled
from peaksight.jax.devices import answer_as
from peaksight.jax.equinox_names import name_equinox_arguments
from peaksight.jax.execution import Planned
from peaksight.jax.interception import VirtualTrace
from peaksight.jax.job import Job
from peaksight.jax.masks import Masks
from peaksight.jax.module_scopes import scope_modules
from peaksight.jax.nnx_names import name_nnx_states
from peaksight.jax.predicting import program_at_peak, tier_of
from peaksight.jax.private import at_top_level, watch_full_like
from peaksight.jax.tracing import call_of
from peaksight.overlays.patches import Patches
from peaksight.records import Approximation, Capture, ScratchWrite, StepPeak, Versions
from peaksight.records.jax_program import JaxProgram, JobFact, MaskFact

# The program that made the peak; that one and those that differentiate; or none, where nobody asks for causes.
FactsOf = Literal["peak", "steps", "nothing"]


class Session:
    """Within it the calling thread's JAX is that of `num_devices` virtual cards of `room`.

    `unguarded` is entered wherever files of our own are written. Threads that the script starts compute for real, on
    the host. With `repair_masks`, a mask that selects nothing is replaced by what `any` in place of `all` makes.
    """

    def __init__(
        self,
        room: Room,
        *,
        num_devices: int = 1,
        max_steps: int | None = None,
        on_step: Callable[[StepPeak], None] | None = None,
        on_compile: Callable[[str, bool], None] | None = None,
        unguarded: AbstractContextManager[Any] | None = None,
        repair_masks: bool = False,
        changes: Changes | None = None,
    ) -> None:
        """Nothing has run; `changes` are those of a plan."""
        self.masks = Masks(repair=repair_masks)
        self._started = time.perf_counter()
        self._room = room
        self._max_steps = max_steps
        self._num_devices = num_devices
        self._job = Job(
            room,
            num_devices,
            max_steps=max_steps,
            on_step=on_step,
            on_compile=on_compile,
            unguarded=unguarded or nullcontext(),
            changes=changes,
        )
        self._trace = VirtualTrace(self._job)
        self._patches = Patches()

    def __enter__(self) -> Self:
        """Put the trace in force."""
        self._patches.enter_context(self._job.changes.traced())
        self._in_force = self._trace.in_force()
        self._in_force.__enter__()
        answer_as(self._patches, self._room.card, self._job.ledger.memory_stats)
        for name in ("set_mesh", "get_mesh"):
            for module in (jax, jax.sharding):
                if (original := getattr(module, name, None)) is not None:
                    self._patches.set(module, name, at_top_level(original))
        self.masks.watch(self._patches)
        device_get = jax.device_get
        self._patches.set(jax, "device_get", lambda tree: device_get(fetched(tree)))
        watch_full_like(self._patches, self._trace.made_like)
        self._trace.pmapped.watch(self._patches)
        name_nnx_states(self._patches)
        name_equinox_arguments(self._patches)
        scope_modules(self._patches)
        compile_for_the_card(self._patches, lambda traced: self._job.plan_of(call_of(traced, ())))
        without_checkpoint_files(self._patches, self._job.notes, self._trace.restored)
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        """JAX computes again."""
        self._patches.close()
        self._in_force.__exit__(None, None, None)

    @property
    def fact(self) -> JobFact:
        """What the job came to."""
        return self._job.fact()

    def capture(
        self,
        argv: Sequence[str],
        *,
        finished: str,
        exit_code: int,
        notes: tuple[Approximation, ...] = (),
        writes: tuple[ScratchWrite, ...] = (),
        masks: tuple[MaskFact, ...] = (),
        facts_of: FactsOf = "peak",
    ) -> Capture:
        """What happened on the card; `masks` are those that select nothing. There are facts of programs `facts_of`."""
        job = self._job
        untrained = finished == "script" and not job.ledger.step and self._max_steps != 0 and job.ledger.peak_bytes
        tier = tier_of(job.any_program) if job.any_program else "none: no jitted function was called"
        capture = job.ledger.capture(
            argv,
            self._room,
            self._started,
            versions=Versions(installed=f"jax {jax.__version__}", device_rules=tier),
            not_simulated=job.notes.approximations(job.ledger.peak_bytes) + notes,
            finished="untrained" if untrained else finished,
            script_exit=exit_code,
            programs=tuple(replace(each, masks=masks) for each in self._examined(facts_of)),
            program_calls=job.program_calls(),
            without_effect=job.changes.without_effect(),
        )
        return replace(capture, writes=writes)

    def _examined(self, facts_of: FactsOf) -> Iterator[JaxProgram]:
        """What rules read; of the peak alone with what XLA plans for changes: a search compiles all that it tries."""
        for planned in _programs(self._job, facts_of):
            program = program_at_peak(planned, self._room)
            is_asked = facts_of == "peak"
            yield with_compiled(program, planned, self._room.card, self._num_devices) if is_asked else program


def _programs(job: Job, facts_of: FactsOf) -> list[Planned]:
    """Each once, that of the peak first."""
    if facts_of == "nothing" or job.at_peak is None:
        return []
    steps = job.steps if facts_of == "steps" else ()
    return [job.at_peak, *(each for each in steps if each is not job.at_peak)]
