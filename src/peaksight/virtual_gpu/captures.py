"""A run that is over becomes records: one capture for each card that it used."""

import time
from dataclasses import dataclass

import torch

from peaksight.records import Approximation, Capture, NotReached, ScratchWrite, ScriptCommand, Versions
from peaksight.virtual_gpu.card import VirtualGpu
from peaksight.virtual_gpu.memory.ledger import Ledger
from peaksight.virtual_gpu.script.program import source_directory
from peaksight.virtual_gpu.source_texts import source_lines_at


@dataclass(frozen=True, slots=True, kw_only=True)
class WholeRun:
    """What is the same on each of its cards: its fields are those of `Capture`.

    It began at `started_seconds` of `time.perf_counter()`; `fatal` is the number of the failure that ended it, of all
    of its cards.
    """

    command: ScriptCommand
    started_seconds: float
    finished: str
    exit_code: int
    fatal: int | None
    not_simulated: tuple[Approximation, ...]
    writes: tuple[ScratchWrite, ...]
    not_reached: tuple[NotReached, ...] | None
    without_effect: tuple[str, ...]


def capture_on(ledger: Ledger, gpu: VirtualGpu, run: WholeRun) -> Capture:
    """What `gpu` saw of `run` on the card of `ledger`."""
    peaks, failures = ledger.peaks, gpu.failures.on(ledger.device)
    return Capture(
        argv=run.command.argv,
        gpu=gpu.room.card.name,
        versions=Versions(installed=str(torch.__version__), device_rules=gpu.rules.build),
        allocations=tuple(birth.record() for birth in ledger.births),
        steps=tuple(ledger.steps),
        peak_tick=peaks.tick,
        peak_allocated_bytes=peaks.allocated_bytes,
        peak_reserved_bytes=peaks.reserved_bytes,
        peak_requested_bytes=peaks.requested_bytes,
        peak_active_bytes=peaks.active_bytes,
        not_simulated=run.not_simulated,
        writes=run.writes,
        finished=run.finished,
        script_exit=run.exit_code,
        calls=tuple(ledger.calls),
        failures=failures,
        fatal=next((index for index, failure in enumerate(failures) if failure.number == run.fatal), None),
        outside_bytes=ledger.allocator.outside_bytes,
        not_reached=run.not_reached,
        device=ledger.device,
        rank=gpu.world.rank,
        world_size=gpu.world.size,
        collectives=tuple(gpu.collectives.facts),
        observed=not gpu.witness.has_failed,
        holds=gpu.witness.holds_on(ledger.device),
        passes=tuple(gpu.witness.passes.calls[ledger.device]),
        backwards=tuple(gpu.witness.passes.backwards[ledger.device]),
        terms=tuple(gpu.witness.passes.terms) if ledger.device == 0 else (),
        modules=gpu.witness.modules.facts,
        optimizers=gpu.witness.optimizers.facts,
        batches=tuple(gpu.witness.batches.facts[ledger.device]),
        labels=tuple(gpu.witness.labels.facts[ledger.device]),
        weights=gpu.witness.weights.facts_on(ledger.device),
        checkpoints=gpu.witness.checkpoints.facts_on(ledger.device),
        checkpoint_flags=gpu.witness.checkpoint_flags.facts,
        settings=gpu.witness.settings.facts,
        freezes=gpu.witness.freezes,
        statements=gpu.witness.statements,
        source_lines=source_lines_at({birth.lines.source for birth in ledger.births}, source_directory(run.command)),
        without_effect=run.without_effect,
        work=tuple(gpu.stopwatch.steps[ledger.device]),
        seconds=time.perf_counter() - run.started_seconds,
    )
