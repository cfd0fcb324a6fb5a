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
from peaksight.overlays.seeds import seeded
from peaksight.records import Capture, ScriptCommand, StepPeak
from peaksight.records.plan import Change
from peaksight.virtual_gpu.captures import WholeRun, capture_on
from peaksight.virtual_gpu.card import VirtualGpu
from peaksight.virtual_gpu.device_rules import rules_for
from peaksight.virtual_gpu.garbage import collect_as_usual, collect_rarely
from peaksight.virtual_gpu.ranks.told import Told
from peaksight.virtual_gpu.ranks.world import World, as_rank
from peaksight.virtual_gpu.script import Ending, Scratch, explain, run_script
from peaksight.virtual_gpu.script.environment import variables
from peaksight.virtual_gpu.script.program import source_directory
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
    measure what counting costs. Where the script seeds no generator of the host, `rank` is the seed.
    """
    started = time.perf_counter()
    command, world = as_rank(command, rank), World.of(command, rank)
    rules = rules_for(device_rules or torch.__version__, room.card)
    for warning in filter(None, (check_release(), rules.warning)):
        print(f"peaksight: {warning}", file=sys.stderr)
    with variables(command.environment), Scratch(told.files if told else None) as scratch:
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
        with gpu, seeded(rank), Patches() as patches:
            collect_rarely()
            patches.callback(collect_as_usual)
            lookout.install(patches)
            stand_ins.install(patches, command, partial(gpu.approximations.note, "stand-in"))
            applied = apply_changes(changes, patches)
            finished, ending = _run(command, lookout)
        _explain(ending, scratch, gpu.approximations.first_place("values"))
    gpu.witness.run_ended(lookout.files)
    finished, exit_code, fatal = _outcome(gpu, finished, ending)
    run = WholeRun(
        command=command,
        started_seconds=started,
        finished=finished,
        exit_code=exit_code,
        fatal=fatal,
        not_simulated=gpu.approximations.records() + scratch.notes(),
        writes=scratch.writes(),
        not_reached=lookout.not_reached(),
        without_effect=applied.without_effect(),
    )
    captures = tuple(capture_on(ledger, gpu, run) for ledger in gpu.devices.used)
    return captures if max_steps == 0 else _demand_training(captures)


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


def _outcome(gpu: VirtualGpu, finished: str, ending: Ending) -> tuple[str, int, int | None]:
    """Why the run ended, its exit code, and the number of the failure that ended it, None if none did.

    What fails once the training has shown enough is no failure of the run.
    """
    fatal = gpu.failures.ending(ending.error, ending.exit_code, gpu.devices.num_births)
    if finished == "failed" and fatal is None and gpu.loop.is_over:
        gpu.approximations.note("after-training", str(ending.exit_code))
        return "steady", 0, None
    return finished, ending.exit_code, fatal


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
