"""One simulated run: the script on the virtual GPU, from its first line to the capture."""

import sys
import time
from collections.abc import Callable, Sequence
from dataclasses import replace
from functools import partial

import torch

from peaksight.errors import StopSimulation, UnsupportedError
from peaksight.gpus import Room
from peaksight.overlays.apply import apply_changes
from peaksight.overlays.patches import Patches
from peaksight.records import Capture, ScriptCommand, StepPeak, Versions
from peaksight.records.plan import Change
from peaksight.virtual_gpu.card import VirtualGpu
from peaksight.virtual_gpu.device_rules import rules_for
from peaksight.virtual_gpu.garbage import collect_as_usual, collect_rarely
from peaksight.virtual_gpu.memory.ledger import Ledger
from peaksight.virtual_gpu.ranks.told import Told
from peaksight.virtual_gpu.ranks.world import World, as_rank
from peaksight.virtual_gpu.script import Ending, Scratch, explain, run_script
from peaksight.virtual_gpu.script.environment import variables
from peaksight.virtual_gpu.script.program import source_directory
from peaksight.virtual_gpu.source_texts import source_lines_at
from peaksight.virtual_gpu.stand_ins import finder as stand_ins
from peaksight.virtual_gpu.torch_release import check_release
from peaksight.virtual_gpu.unreached import Lookout


def simulate(
    command: ScriptCommand,
    room: Room,
    *,
    num_gpus: int = 1,
    rank: int = 0,
    told: Told | None = None,
    max_failures: int | None = None,
    device_rules: str | None = None,
    max_steps: int | None = None,
    worst_batch: bool = False,
    changes: Sequence[Change] = (),
    on_step: Callable[[StepPeak], None] | None = None,
    record: bool = True,
) -> tuple[Capture, ...]:
    """Run `command` on `num_gpus` virtual cards of `room` and return what it allocated on each that it used.

    Of several ranks, `rank` is simulated, on a machine with a card for each of its ranks at least. `told` takes
    what it sends to others and writes, and has what it receives from the one that was simulated before.

    What a card cannot serve is raised in the script. After `max_failures` of that no card has a limit any more; zero is
    a run without any. `device_rules` is a build as `--torch` takes it (`2.11+cu130`), by default the installed
    one. The run stops by itself at the steady state, or after `max_steps` (0: none is expected); `on_step` is called at
    the end of each step. With `worst_batch`, DataLoaders give the longest samples of their datasets. `changes` are
    those of a plan; which of them did nothing is in `without_effect` of the capture. `record=False` counts nothing, to
    measure what counting costs.
    """
    started = time.perf_counter()
    command, world, told = as_rank(command, rank), World.of(command, rank), told or Told()
    rules = rules_for(device_rules or torch.__version__, room.card)
    for warning in filter(None, (check_release(), rules.warning)):
        print(f"peaksight: {warning}", file=sys.stderr)
    with variables(command.environment), Scratch(told.files) as scratch:
        lookout = Lookout(source_directory(command))
        gpu = VirtualGpu(
            room,
            rules,
            num_gpus=max(num_gpus, world.per_machine),
            world=world,
            told=told,
            max_failures=max_failures,
            script_dir=source_directory(command),
            max_steps=max_steps,
            worst_batch=worst_batch,
            on_step=on_step,
            files=scratch,
            lookout=lookout,
            record=record,
        )
        with gpu, Patches() as patches:
            collect_rarely()
            patches.callback(collect_as_usual)
            lookout.install(patches)
            stand_ins.install(patches, command, partial(gpu.approximations.note, "stand-in"))
            applied = apply_changes(changes, patches)
            finished, ending = _run(command, lookout)
        _explain(ending, scratch, gpu.approximations.first_place("values"))
    gpu.witness.run_ended(lookout.files)
    fatal = gpu.failures.ending(ending.error, ending.exit_code, gpu.devices.num_births)
    if finished == "failed" and fatal is None and gpu.loop.is_over:
        gpu.approximations.note("after-training", str(ending.exit_code))
        finished, ending = "steady", Ending(exit_code=0)
    captures = tuple(
        replace(
            _capture(command, gpu, ledger, finished=finished, exit_code=ending.exit_code, fatal=fatal),
            not_simulated=gpu.approximations.records() + scratch.notes(),
            writes=scratch.writes(),
            not_reached=lookout.not_reached(),
            source_lines=source_lines_at({birth.lines.source for birth in ledger.births}, source_directory(command)),
            seconds=time.perf_counter() - started,
            without_effect=applied.without_effect(),
        )
        for ledger in gpu.devices.used
    )
    return captures if max_steps == 0 else _demand_training(captures)


def _capture(
    command: ScriptCommand, gpu: VirtualGpu, ledger: Ledger, *, finished: str, exit_code: int, fatal: int | None
) -> Capture:
    """What `gpu` saw on the card of `ledger` of a run that is over; the failure with the number `fatal` ended it."""
    peaks, failures = ledger.peaks, gpu.failures.on(ledger.device)
    return Capture(
        argv=command.argv,
        gpu=gpu.room.card.name,
        versions=Versions(installed=str(torch.__version__), device_rules=gpu.rules.build),
        allocations=tuple(birth.record() for birth in ledger.births),
        steps=tuple(ledger.steps),
        peak_tick=peaks.tick,
        peak_allocated_bytes=peaks.allocated_bytes,
        peak_reserved_bytes=peaks.reserved_bytes,
        peak_requested_bytes=peaks.requested_bytes,
        peak_active_bytes=peaks.active_bytes,
        not_simulated=(),
        writes=(),
        finished=finished,
        script_exit=exit_code,
        seconds=0.0,
        calls=tuple(ledger.calls),
        failures=failures,
        fatal=next((index for index, failure in enumerate(failures) if failure.number == fatal), None),
        outside_bytes=ledger.allocator.outside_bytes,
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
        work=tuple(gpu.stopwatch.steps[ledger.device]),
    )


def _run(command: ScriptCommand, lookout: Lookout) -> tuple[str, Ending]:
    """Why the run ended, and how the script did."""
    try:
        ending = run_script(command, lookout.files.compile)
    except StopSimulation as stop:
        return stop.reason, Ending(exit_code=0)
    except KeyboardInterrupt:
        return "interrupted", Ending(exit_code=130)
    if ending.was_interrupted:
        return "interrupted", ending
    return ("failed" if ending.exit_code else "script"), ending


def _explain(ending: Ending, scratch: Scratch, stand_in_at: str | None) -> None:
    if ending.exit_code and ending.error is not None:
        explained = explain(ending.error, scratch.refused_hosts(), stand_in_at)
        if explained is not None:
            print(f"peaksight: {explained} See docs/messages.md#{explained.slug}.", file=sys.stderr)


def _demand_training(captures: tuple[Capture, ...]) -> tuple[Capture, ...]:
    """`captures`, whose peak is not that of training where no optimizer stepped; a card that was too small stays that.

    Raises:
        UnsupportedError: another process may have trained.
    """
    if any(capture.fatal is not None or any(step.complete for step in capture.steps) for capture in captures):
        return captures
    if any(note.slug == "other-process" for note in captures[0].not_simulated):
        raise _training_elsewhere()
    used_card = any(capture.peak_allocated_bytes > 0 for capture in captures)
    if not used_card or captures[0].finished != "script":
        return captures
    return tuple(replace(capture, finished="untrained") for capture in captures)


def _training_elsewhere() -> UnsupportedError:
    return UnsupportedError(
        "No answer: the script uses the card in a process that it starts, and only its own process is simulated. "
        "Call the function of that process directly, or start it with torch.multiprocessing.spawn or torchrun, whose "
        "rank 0 is simulated.",
        slug="other-process",
    )
