"""The virtual GPU: everything that makes torch believe in the card, for the length of a `with`."""

import os
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import partial
from typing import Any

import torch

from peaksight.allocator.device import DeviceOutOfMemory
from peaksight.allocator.settings_parser import settings_from_environment
from peaksight.gpus import Room
from peaksight.overlays.patches import Patches
from peaksight.records import Phase, Role, StepPeak
from peaksight.units import format_bytes
from peaksight.virtual_gpu import installation
from peaksight.virtual_gpu.approximations import Approximations
from peaksight.virtual_gpu.device_rules import DeviceRules
from peaksight.virtual_gpu.evidence.witness import Witness
from peaksight.virtual_gpu.garbage import collect_as_usual
from peaksight.virtual_gpu.kernels.hidden_memory import HiddenMemory
from peaksight.virtual_gpu.kernels.temporaries import KernelCall
from peaksight.virtual_gpu.memory.at_the_limit import Failures
from peaksight.virtual_gpu.memory.births import Circumstances, in_words
from peaksight.virtual_gpu.memory.devices import Devices, allocator_of
from peaksight.virtual_gpu.memory.ledger import Ledger
from peaksight.virtual_gpu.memory.roles import Roles, is_of_host
from peaksight.virtual_gpu.memory.traits import Traits, traits_of
from peaksight.virtual_gpu.ranks.collectives import Collectives, note_functional
from peaksight.virtual_gpu.ranks.told import Told
from peaksight.virtual_gpu.ranks.world import World
from peaksight.virtual_gpu.script.other_processes import refuse_card, refuse_used_card
from peaksight.virtual_gpu.source_lines import Lines, SourceLines
from peaksight.virtual_gpu.tensors.results import card_of, device_tensors
from peaksight.virtual_gpu.timing.stopwatch import Stopwatch
from peaksight.virtual_gpu.training.autograd_lines import AutogradLines
from peaksight.virtual_gpu.training.step_ends import end_of_step
from peaksight.virtual_gpu.training.stopping import StepEnd, StopRule
from peaksight.virtual_gpu.training.training_loop import TrainingLoop
from peaksight.virtual_gpu.training.trials import is_trial, may_be_trial
from peaksight.virtual_gpu.training.worst_batch import WorstBatches
from peaksight.virtual_gpu.unreached import LargerBatches, Lookout, is_last_round, rounds_left
from peaksight.virtual_gpu.weights import saving

# Without a limit a search for the largest batch size does not end: this many times the card is enough to see.
MAX_TRIAL_CARDS = 8


class VirtualGpu:
    """Cards that exist only inside `with VirtualGpu(...)`: torch.cuda answers for them and their allocators count."""

    def __init__(
        self,
        room: Room,
        rules: DeviceRules,
        *,
        num_gpus: int = 1,
        world: World | None = None,
        told: Told | None = None,
        max_failures: int | None = None,
        script_dir: str = ".",
        max_steps: int | None = None,
        worst_batch: bool = False,
        on_step: Callable[[StepPeak], None] | None = None,
        files: saving.Files | None = None,
        lookout: Lookout | None = None,
        record: bool = True,
    ) -> None:
        """`num_gpus` cards of `room` with nothing on them, for one rank of `world`, by default the only one.

        `told` is what an earlier rank of the same job left.

        After `max_failures` allocations that they could not serve they have no limit any more. Source lines are named
        relative to `script_dir`; `on_step` sees each step end, as does `lookout`, from inside of the loop;
        `files` is where the script's files are. With `worst_batch`, DataLoaders give the longest samples. Without
        `record` nothing is counted: the bare cost of running on fake tensors.
        """
        self.room = room
        self.rules = rules
        self.world = world or World()
        self.lines = SourceLines(script_dir)
        self.devices = Devices(num_gpus, self._new_ledger, rules.torch)
        self.failures = Failures(
            room,
            max_failures=max_failures,
            backward_source=self.lines.calling_backward,
            num_births=lambda: self.devices.num_births,
        )
        if max_failures == 0:
            self.devices.lift_limits()
        self.loop = TrainingLoop(
            StopRule(max_steps, max_trial_bytes=MAX_TRIAL_CARDS * room.card.total_bytes),
            on_step_end=self._end_step,
            on_trial=self._end_trial,
            on_growth=lambda growth: self.approximations.note("growth", format_bytes(growth)),
            is_last_round=is_last_round,
            rounds_left=rounds_left,
            has_more=lambda: lookout is not None and bool(lookout.not_reached()),
            larger_come=LargerBatches(self.lines, lambda *told: self.approximations.note(*told)).come,
            count_blocks=lambda: self.devices.num_births,
        )
        self.stopwatch = Stopwatch(room.card, self.devices, self.loop)
        for ledger in self.devices.ledgers:
            ledger.recorded_streams.clocks = self.stopwatch.clocks
        self.witness = Witness(self.devices, self.loop, self.lines)
        self.told = told or Told()
        self.collectives = Collectives(self.loop, self.lines)
        self._roles = Roles(self.devices, self.loop)
        self._on_step = on_step
        self._lookout = lookout
        self.files = files or saving.RealFiles()
        self._record = record
        self.approximations = Approximations()
        self._nodes = AutogradLines()
        self._lines_of_call: Lines | None = None
        self._hidden = HiddenMemory(self.devices, room.card, rules, self._library_failed, self.approximations)
        self._patches = Patches()
        self.worst = WorstBatches(partial(self.approximations.note, "worst-batch")) if worst_batch else None

    @property
    def ledger(self) -> Ledger:
        """That of the first card."""
        return self.devices.ledgers[0]

    def __enter__(self) -> "VirtualGpu":
        """Put the cards in."""
        installation.install(self._patches.__enter__(), self)
        return self

    def __exit__(self, *exc_info: Any) -> None:
        """Take the cards out."""
        self._patches.__exit__(*exc_info)
        for ledger in self.devices.ledgers:
            ledger.end(self.loop.step)

    @contextmanager
    def unrecorded(self) -> Iterator[None]:
        """A context in which operators happen nowhere: what torch asks fake tensors for beside the run."""
        record, self._record = self._record, False
        try:
            yield
        finally:
            self._record = record

    def after(self, func: Any, args: tuple[Any, ...], kwargs: dict[str, Any], out: Any, known: Any) -> None:
        """An operator ran on the card: its new storages are born, its workspaces taken, its time passes."""
        if self._record:
            self._lines_of_call = None
            try:
                self._record_call(func, args, kwargs, out, known)
            finally:
                self._lines_of_call = None

    def _record_call(self, func: Any, args: tuple[Any, ...], kwargs: dict[str, Any], out: Any, known: Any) -> None:
        if self._nodes.pending() and torch.is_grad_enabled():
            self._lines_of_call = self._current_lines()
            self._nodes.note(self.loop.module, self._lines_of_call)
        traits = traits_of(func)
        if traits.is_collective:
            note_functional(func, args)
        if traits.is_slice:
            self.witness.sliced(self.lines.current().source, args)
        card = card_of(out)
        if card is not None and traits.may_allocate and self._lines_of_call is None:
            self._lines_of_call = self._current_lines()  # here fewer frames are to be walked up than at the birth
        self.stopwatch.ran(func, args, kwargs, out, card, known)
        if card is not None:
            call = KernelCall(func, args, kwargs, out, self.rules)
            note_results = partial(self._note_results, traits, func, args)
            self._hidden.take(card, call, self.loop.phase is Phase.BACKWARD, note_results)
        else:
            self._note_results(traits, func, args, out)
        self.witness.ran(func, args, out)

    def _note_results(self, traits: Traits, func: Any, args: tuple[Any, ...], out: Any) -> None:
        if traits.may_allocate:
            role, module = self._roles.of(func, args)
            for card, tensor in device_tensors(func, out, self.made_up):
                storage = tensor.untyped_storage()
                birth = self.devices.ledgers[card].storages.born(storage, traits.name, role, module, in_words(tensor))
                if birth is not None and traits.is_loss and tensor is out[0]:
                    self.witness.labels_read(card, birth, args)
                if birth is not None and traits.is_copy:
                    birth.copy_of = self._roles.copied_by(args)
                    if role is Role.INPUT and is_of_host(func, args):
                        self.witness.arrived(card, birth, args[0])
        elif traits.may_resize:
            for card, tensor in device_tensors(func, out, self.made_up):
                self.devices.ledgers[card].storages.resized(tensor.untyped_storage(), traits.name)

    def leaves(self, tensor: torch.Tensor) -> None:
        """The host has waited for what `tensor` holds."""
        self.stopwatch.left_card(card_of(tensor) or 0, tensor.numel() * tensor.itemsize)
        self.witness.weights.reaches(tensor)

    def lacks(self, device: torch.device) -> None:
        """The script asks for another card than the first: raises what the runtime says where it is not there."""
        self.devices.demand(device.index)

    def made_up(self, what: str) -> None:
        """`what` is not that of the real run, at the line that is running."""
        self.approximations.note(f"{what}s", self.lines.current().source)

    def become_fork(self) -> None:
        """In a process that the script forked: it has no card, and its steps are not the run's."""
        self.loop.is_followed = False
        is_used = self.devices.are_used
        for ledger in self.devices.ledgers:
            ledger.refuse(refuse_used_card if is_used else refuse_card)

    def _new_ledger(self, index: int) -> Ledger:
        return Ledger(
            allocator_of(self.room, index),
            self._circumstances,
            on_first_use=partial(self._begin_use, index),
            on_failure=partial(self._out_of_memory, index),
            on_done_without=partial(self._done_without, index),
            device=index,
        )

    def _begin_use(self, index: int) -> None:
        """Read the settings as PyTorch does at the first use of a card, so that a script may set them before it."""
        self.devices.demand(index)
        collect_as_usual()
        settings = settings_from_environment(os.environ)
        if settings != self.devices.ledgers[index].allocator.settings:
            self.devices.ledgers[index].begin(settings)

    def _out_of_memory(self, index: int, error: DeviceOutOfMemory, op: str) -> None:
        self._give_up_step()
        self.failures.out_of_memory(self.devices.ledgers[index], self._circumstances(), error, op)
        self.devices.lift_limits()

    def _done_without(self, index: int, error: DeviceOutOfMemory) -> None:
        self.failures.tell(self.devices.ledgers[index], error)

    def _library_failed(self, ledger: Ledger, library: str, num_bytes: int, error: Exception) -> None:
        self._give_up_step()
        self.failures.library_failed(ledger, self._circumstances(), library, num_bytes, error)
        self.devices.lift_limits()

    def _give_up_step(self) -> None:
        self.loop.failed()
        self.failures.in_search = is_trial() or self.loop.may_be_searching()
        if is_trial():
            self.devices.begin_step_anew()

    def optimizer_stepped(self, optimizer: torch.optim.Optimizer) -> None:
        """The script called its `step`."""
        self.witness.optimizer_stepped(optimizer)
        self.stopwatch.optimizer_stepped(optimizer)

    def _end_trial(self) -> None:
        self.failures.step_ended()
        self.devices.begin_step_anew()

    def _end_step(self, step: int) -> StepEnd:
        self.failures.step_ended()
        searches = may_be_trial()
        peaks = [ledger.end_step(step, may_be_trial=searches) for ledger in self.devices.ledgers]
        self.witness.step_ends()
        self.stopwatch.end_step(step)
        if self._lookout is not None:
            self._lookout.look()
        if self._on_step is not None:
            self._on_step(max(peaks, key=lambda peak: peak.peak_reserved_bytes))
        return end_of_step(step, self.devices.ledgers, peaks)

    def _current_lines(self) -> Lines:
        """The lines that are running; of what a backward pass runs again, where it was checkpointed."""
        lines, at = self.lines.current(), self.witness.checkpoints.rerun_at
        return Lines(at, lines.library) if at and lines.called_backward else lines

    def _circumstances(self) -> Circumstances:
        lines = self._lines_of_call or self._current_lines()
        module, grad_enabled = self.loop.module, torch.is_grad_enabled()
        node, of_program = self._nodes.of_running_node(), lines.module
        if node is not None and not (grad_enabled and module):
            module = node[0]
            if lines.called_backward:
                lines = Lines(node[1].source or lines.source, node[1].library)
        module = of_program or module
        return Circumstances(self.loop.step, self.loop.phase, grad_enabled, module, lines, self._nodes.running)
