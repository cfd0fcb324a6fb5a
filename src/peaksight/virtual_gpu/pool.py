"""Many simulations, a few at a time: each in a process forked from one that has the library loaded and nothing else."""

import multiprocessing
import os
import sys
import tempfile
import traceback
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ProcessPoolExecutor
from concurrent.futures.process import BrokenProcessPool
from dataclasses import dataclass, field
from functools import partial
from typing import Any, TypeVar

from peaksight.errors import PeaksightError
from peaksight.gpus import Room
from peaksight.records import Capture, ScriptCommand

Summary = TypeVar("Summary")

_PRELOADED = ("torch", "peaksight.virtual_gpu.simulation")
_MAX_SAID = 200
# Beginnings of lines that are below an error: ours, and what JAX says of frames that it leaves out of a traceback.
_NOT_THE_ERROR = ("peaksight:", "-----", "For simplicity, JAX has removed")


@dataclass(frozen=True, slots=True, kw_only=True)
class Simulation:
    """One to make: a command, and options of `simulate`."""

    command: ScriptCommand
    options: dict[str, Any] = field(default_factory=dict)


class Pool:
    """`with Pool(room, summarise) as pool: pool.run(simulations)`.

    A simulation returns what `summarise` makes of its captures, or `failed` of the last thing that it said. `simulate`
    makes it, under torch unless given, with the modules `preloaded`.
    """

    def __init__(
        self,
        room: Room,
        summarise: Callable[[tuple[Capture, ...]], Summary],
        failed: Callable[[str], Summary],
        *,
        workers: int | None = None,
        simulate: Callable[..., tuple[Capture, ...]] | None = None,
        preloaded: Sequence[str] = _PRELOADED,
    ) -> None:
        """As many `workers` as this machine has processors, unless given."""
        self._room, self._summarise, self._failed = room, summarise, failed
        self._how = simulate or _under_torch
        self._workers = workers or len(os.sched_getaffinity(0))
        context = multiprocessing.get_context("forkserver")
        context.set_forkserver_preload(list(preloaded))
        self._make = partial(ProcessPoolExecutor, self._workers, mp_context=context, max_tasks_per_child=1)
        self._executor = self._make()

    def __enter__(self) -> "Pool":
        """Start nothing yet."""
        return self

    def __exit__(self, kind: type[BaseException] | None, *error: Any) -> None:
        """End what still runs, if an exception leaves it.

        The executor is waited for: its thread may be starting a process, and would never end without it.
        """
        if kind is not None:
            for process in list((self._executor._processes or {}).values()):
                process.terminate()
        self._executor.shutdown(wait=True, cancel_futures=True)

    @property
    def workers(self) -> int:
        """How many run at a time."""
        return self._workers

    def run(self, simulations: Sequence[Simulation]) -> Iterator[Any]:
        """The summaries in the order of `simulations`, each as soon as it and those before are there."""
        futures = [
            self._executor.submit(_simulate, each, self._room, self._how, self._summarise, self._failed)
            for each in simulations
        ]
        for future in futures:
            try:
                yield future.result()
            except BrokenProcessPool:
                self._executor = self._make()
                yield self._failed("its process was ended from outside")


def _under_torch(command: ScriptCommand, room: Room, **options: Any) -> tuple[Capture, ...]:
    from peaksight.virtual_gpu.simulation import simulate

    return simulate(command, room, max_failures=0, **options)


def _simulate(
    simulation: Simulation,
    room: Room,
    how: Callable[..., tuple[Capture, ...]],
    summarise: Callable[..., Summary],
    failed: Callable[[str], Summary],
) -> Summary:
    """In a process of its own."""
    with tempfile.TemporaryFile("w+", errors="replace") as said:
        _redirect(said.fileno())
        try:
            captures = how(simulation.command, room, **simulation.options)
        except PeaksightError as error:
            return failed(str(error))
        except Exception:
            traceback.print_exc()
            return failed(_last_line(said))
        if captures[0].finished == "failed":
            return failed(_last_line(said))
        return summarise(captures)


def _redirect(errors: int) -> None:
    """The script reads nothing, its prints go nowhere, and what it says on stderr is kept."""
    nowhere = os.open(os.devnull, os.O_RDWR)
    for stream, target in ((0, nowhere), (1, nowhere), (2, errors)):
        os.dup2(target, stream)


def _last_line(said: Any) -> str:
    sys.stderr.flush()
    said.seek(0)
    lines = [line.strip() for line in said if line.strip() and not line.startswith(_NOT_THE_ERROR)]
    return lines[-1][:_MAX_SAID] if lines else "it said nothing"
