"""Looks at the objects of the script where a backward pass begins and where a step ends, and keeps what it saw."""

import sys
from collections import Counter, defaultdict
from collections.abc import Callable, Iterator
from types import FrameType
from typing import Any

import torch
from torch import nn
from torch.utils.data import DataLoader

from peaksight.overlays.patches import Patches
from peaksight.records import FreezeFact, Hold, Phase, Role, StatementFact
from peaksight.virtual_gpu.evidence.batches_seen import BatchesSeen
from peaksight.virtual_gpu.evidence.checkpoint_flags import CheckpointFlags
from peaksight.virtual_gpu.evidence.checkpoints_seen import CheckpointsSeen
from peaksight.virtual_gpu.evidence.config_settings import ConfigSettings
from peaksight.virtual_gpu.evidence.freeze_statements import freeze_facts
from peaksight.virtual_gpu.evidence.freezing import Freezing
from peaksight.virtual_gpu.evidence.graphs import Graphs
from peaksight.virtual_gpu.evidence.labels_seen import LabelsSeen
from peaksight.virtual_gpu.evidence.modules_seen import ModulesSeen
from peaksight.virtual_gpu.evidence.names import Named, named_tensors
from peaksight.virtual_gpu.evidence.optimizers_seen import OptimizersSeen
from peaksight.virtual_gpu.evidence.passes_seen import PassesSeen
from peaksight.virtual_gpu.evidence.statements import statement_facts
from peaksight.virtual_gpu.evidence.weights_seen import WeightsSeen
from peaksight.virtual_gpu.memory.births import Birth
from peaksight.virtual_gpu.memory.devices import Devices
from peaksight.virtual_gpu.source_lines import SourceLines
from peaksight.virtual_gpu.torch_private import FakeTensor
from peaksight.virtual_gpu.training.training_loop import TrainingLoop
from peaksight.virtual_gpu.unreached.probed_files import ProbedFiles

# Of each kind of moment the first ones are looked at, and then ever fewer; of each look the largest blocks are kept.
NUM_FIRST_LOOKS = 4
MAX_HOLDS = 256
# What indexing with slices calls; without a step there is no slice.
SLICES = frozenset({torch.ops.aten.slice.Tensor, torch.ops.aten.alias.default})
_TOLD_BY_ROLE = {Role.PARAMETER, Role.GRADIENT, Role.OPTIMIZER_STATE, Role.BUFFER, Role.WORKSPACE}


class Witness:
    """What one run shows beside its allocations. Whatever the script's objects answer, the run goes on."""

    def __init__(self, devices: Devices, loop: TrainingLoop, lines: SourceLines) -> None:
        """Nothing was seen yet."""
        self.modules = ModulesSeen(loop.modules)
        self.optimizers = OptimizersSeen()
        self.batches = BatchesSeen(devices, loop, lines)
        self.labels = LabelsSeen()
        self.weights = WeightsSeen(devices, loop, lines)
        self.checkpoints = CheckpointsSeen(devices, loop, lines)
        self.checkpoint_flags = CheckpointFlags(self.modules)
        self.passes = PassesSeen(devices, loop, lines)
        self.settings = ConfigSettings(loop, lines)
        self.freezing = Freezing(lines, lambda: loop.phase is not Phase.INIT)
        self.freezes: tuple[FreezeFact, ...] = ()
        self.statements: tuple[StatementFact, ...] = ()
        self.has_failed = False
        self._devices, self._loop, self._lines = devices, loop, lines
        self._graphs = Graphs(self._birth_of)
        self._holds: dict[int, list[Hold]] = defaultdict(list)
        self.largest_steps: dict[str, int] = {}
        self._num_moments: Counter[str] = Counter()

    def install(self, patches: Patches) -> None:
        """Follow what the script sets until `patches` is left."""
        self.freezing.install(patches)
        self.checkpoints.install(patches)
        self.settings.install(patches)

    def run_ended(self, files: ProbedFiles) -> None:
        """The script is over; `files` are its own."""

        def look() -> None:
            self.freezes = freeze_facts(files, self.freezing)
            self.statements = statement_facts(files, self.largest_steps)

        self._try(look)

    def backward_begins(self, roots: Any, *, retains_graph: bool, creates_graph: bool) -> None:
        """The engine is called for `roots`: tensors, or edges."""
        asked = {"retains_graph": retains_graph, "creates_graph": creates_graph}
        self._try(lambda: self._graphs.pass_begins(roots))
        self._try(lambda: self.weights.reaches(roots))
        self._try(lambda: self.passes.backward_begins(roots, birth_of=self._birth_of, **asked))
        self._look("backward", sys._getframe(1))

    def sliced(self, line: str, args: tuple[Any, ...]) -> None:
        """A tensor was sliced at `line`, by `args` of one of `SLICES`."""
        step = args[4] if len(args) > 4 else 1
        self.largest_steps[line] = max(step, self.largest_steps.get(line, 1)) if isinstance(step, int) else 2

    def step_ends(self) -> None:
        """Every optimizer has stepped."""
        self._try(lambda: self.checkpoint_flags.step_ends(self.checkpoints.modules_called(self._loop.step)))
        self._try(self.modules.step_ends)
        self._try(self.weights.step_ends)
        self._try(self.freezing.step_ends)
        self._look("step", sys._getframe(1))

    def loader_read(self, loader: DataLoader[Any]) -> Callable[[Any], None]:
        """`loader` is read from its begin; what to call with each batch that it gives."""
        asked = self.batches.asked(loader)
        return lambda batch: self._try(lambda: self.batches.gave(asked, batch))

    def arrived(self, card: int, birth: Birth, tensor: Any) -> None:
        """A `tensor` of the host was copied to the block of `birth`."""
        self._try(lambda: self.labels.arrived(card, birth, tensor))

    def labels_read(self, card: int, birth: Birth, args: tuple[Any, ...]) -> None:
        """A loss with these arguments read its labels, and made the block of `birth`."""
        self._try(lambda: self.labels.read(card, birth, args))

    def ran(self, func: Any, args: tuple[Any, ...], out: Any) -> None:
        """An operator ran on a card."""
        if self.weights.follows(func):
            self._try(lambda: self.weights.ran(func, args, out))

    def module_called(self, module: nn.Module, inputs: Any, *, is_root: bool) -> None:
        """`module` is called with `inputs`, from outside of any other if `is_root`."""
        self.modules.called(module, is_root=is_root)
        if is_root:
            self._try(lambda: self.passes.call_begins(inputs))

    def root_returned(self, module: nn.Module) -> None:
        """A module that no other called is through: what an evaluation keeps shows here."""
        self._try(lambda: self.passes.call_ends(module))
        if not module.training:
            self._look("evaluation", sys._getframe(1))

    def optimizer_stepped(self, optimizer: torch.optim.Optimizer) -> None:
        """One optimizer has stepped."""
        self._try(lambda: self.optimizers.stepped(optimizer))
        self._try(lambda: self.modules.stepped(optimizer))

    def holds_on(self, device: int) -> tuple[Hold, ...]:
        """Who held the blocks of card number `device`."""
        return tuple(self._holds[device])

    def _try(self, look: Callable[[], None]) -> None:
        try:
            look()
        except Exception:  # of an object of the script's that is asked for what it has
            self.has_failed = True

    def _look(self, moment: str, frame: FrameType | None) -> None:
        self._num_moments[moment] += 1
        count = self._num_moments[moment]
        if count <= NUM_FIRST_LOOKS or count & (count - 1) == 0:
            self._try(lambda: self._note_names(frame))

    def _note_names(self, frame: FrameType | None) -> None:
        found: dict[Birth, tuple[int, Hold]] = {}
        seen: set[Any] = set()  # nodes: a block is held by the first that comes to it
        for named in named_tensors(frame, self._lines):
            for device, birth, by_graph in self._held_by(named, seen):
                if birth not in found or (found[birth][1].by_graph and not by_graph):
                    found[birth] = device, self._hold(device, birth, named, by_graph)
        largest = sorted(found, key=lambda birth: -birth.allocated_bytes)[:MAX_HOLDS]
        for birth in largest:
            device, hold = found[birth]
            self._holds[device].append(hold)

    def _held_by(self, named: Named, seen: set[Any]) -> Iterator[tuple[int, Birth, bool]]:
        """The block of a tensor that has a name, and those that its graph saves, unless their role says it all."""
        own = self._birth_of(named.tensor)
        if own is not None and own.role not in _TOLD_BY_ROLE:
            yield self._device_of(named.tensor), own, False
        if named.tensor.grad_fn is not None:
            for birth in self._graphs.look(named.tensor, seen):
                if birth.role not in _TOLD_BY_ROLE:
                    yield self._device_of(named.tensor), birth, True

    def _hold(self, device: int, birth: Birth, named: Named, by_graph: bool) -> Hold:
        return Hold(
            tick=self._devices.ledgers[device].tick,
            step=self._loop.step,
            phase=self._loop.phase,
            born=birth.born,
            name=named.name,
            where=named.where,
            shown_bytes=birth.requested_bytes if by_graph else named.tensor.nbytes,
            by_graph=by_graph,
        )

    def _device_of(self, tensor: Any) -> int:
        return tensor.fake_device.index if isinstance(tensor, FakeTensor) and tensor.fake_device.index else 0

    def _birth_of(self, tensor: torch.Tensor) -> Birth | None:
        if not isinstance(tensor, FakeTensor) or tensor.layout != torch.strided:
            return None
        return self._devices.birth_of(tensor)
