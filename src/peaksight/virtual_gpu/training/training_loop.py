"""Where the training loop is: step, phase, running module; and when enough steps were seen."""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any
from weakref import WeakKeyDictionary

from peaksight.errors import StopSimulation
from peaksight.overlays.passes import Passes
from peaksight.records import Phase
from peaksight.virtual_gpu.training.stopping import (
    MAX_CALLS_AFTER,
    MIN_STEPS,
    Allowance,
    StepEnd,
    StopRule,
)
from peaksight.virtual_gpu.training.trials import is_trial, may_be_trial

# What the wrapper that torch.compile puts around a module holds it by.
_COMPILED = "_orig_mod"


class ModuleTree:
    """Module paths (FQN) behind the class name of the root module, as torch's ModTracker prints them."""

    def __init__(self) -> None:
        """No module is known before its root is first called."""
        self._paths: WeakKeyDictionary[Any, str] = WeakKeyDictionary()

    def path_of(self, module: Any) -> str:
        """The path of `module`; an unknown one is taken as a root and names everything below it anew."""
        path = self._paths.get(module)
        if path is None:
            compiled = module._modules.get(_COMPILED)  # named by itself, as everything below it
            root = self._paths[module] = type(compiled or module).__name__
            for name, child in (compiled or module).named_modules():
                self._paths[child] = f"{root}.{name}" if name else root
            path = self._paths[module]
        return path


class TrainingLoop:
    """Follows one script through its steps.

    A step is one pass in which every optimizer has stepped (`Passes`). `on_step_end(step)` is called at its end and
    returns what is seen of it; `stop_rule` says whether the run stops then. `on_growth` is told by how much the steps
    grow where that is before the script ends. What a search for a batch size tries is no step: `on_trial` is called
    when an optimizer stepped in it.

    Where more steps would show nothing new of a training that `is_last_round` says is over anyway, the script goes on
    to what follows its loop: `is_over` is True from there on, until another step ends. So it does behind loops whose
    `rounds_left` an `Allowance` covers, where `has_more` says that something with device work was not reached yet, such
    as the evaluation of a short epoch. `count_blocks` says how many blocks the card has handed out.
    """

    def __init__(
        self,
        stop_rule: StopRule,
        *,
        on_step_end: Callable[[int], StepEnd],
        on_trial: Callable[[], None],
        on_growth: Callable[[int], None] = lambda _: None,
        is_last_round: Callable[[], bool] = lambda: False,
        rounds_left: Callable[[], int | None] = lambda: None,
        has_more: Callable[[], bool] = lambda: False,
        larger_come: Callable[[Callable[[int], bool]], bool] = lambda _: False,
        count_blocks: Callable[[], int] = lambda: 0,
    ) -> None:
        """Start in step 1, phase init."""
        self.step = 1
        self.is_followed = True
        self.is_over = False
        self._allowance = Allowance(count_blocks)
        self._num_calls_after = 0
        self._is_last_round = is_last_round
        self._rounds_left = rounds_left
        self._has_more = has_more
        self._larger_come = larger_come
        self._enough: str | None = None
        self.modules = ModuleTree()
        self._stop_rule = stop_rule
        self._on_step_end = on_step_end
        self._on_trial = on_trial
        self._on_growth = on_growth
        self._passes = Passes()
        self._phases: list[Phase] = []
        self._running: list[Any] = []
        self._is_passed = False
        self._has_run_forward = False

    @property
    def phase(self) -> Phase:
        """The phase of an allocation made at this moment."""
        if self._phases:
            return self._phases[-1]
        if self._running and not (self._running[0].training or self._is_passed):
            return Phase.EVALUATION
        return Phase.FORWARD if self._has_run_forward else Phase.INIT

    @property
    def module(self) -> str:
        """The path of the innermost running module, empty outside of any."""
        return self.modules.path_of(self._running[-1]) if self._running else ""

    @property
    def is_running(self) -> bool:
        """Whether a module's forward is running."""
        return bool(self._running)

    @contextmanager
    def within(self, phase: Phase) -> Iterator[None]:
        """Whatever happens inside belongs to `phase`."""
        self.enter(phase)
        try:
            yield
        finally:
            self.leave(phase)

    def enter(self, phase: Phase) -> None:
        """`phase` begins."""
        self._phases.append(phase)

    def leave(self, phase: Phase) -> None:
        """`phase` ends, and with it whatever began inside it and was cut short by an exception."""
        while self._phases and self._phases.pop() is not phase:
            pass

    @property
    def num_phases(self) -> int:
        """How many phases have begun, one inside the other."""
        return len(self._phases)

    def leave_all_but(self, num_phases: int) -> None:
        """An exception ends every phase but the `num_phases` outermost."""
        del self._phases[num_phases:]

    @contextmanager
    def running(self, module: Any, *, is_passed: bool = False) -> Iterator[None]:
        """`module` is running its forward; `is_passed` says of a root that gradients flow through it."""
        if not self._running:
            self._root_called()
            self.modules.path_of(module)
            self._is_passed = is_passed
        self._has_run_forward = True
        self._running.append(module)
        try:
            yield
        finally:
            self._running.pop()

    def optimizer_stepped(self, optimizer: Any) -> None:
        """Count an optimizer's step; raises StopSimulation when enough was seen."""
        if not self.is_followed:
            return
        self._allowance.stepped(optimizer)
        if is_trial():
            self._on_trial()
        elif self._passes.ended_by(optimizer):
            self._end_step()

    def failed(self) -> None:
        """The card could not serve something: whoever catches that may go on with other optimizers."""
        self._passes.begin_anew()

    def may_be_searching(self) -> bool:
        """Whether the running code may be a search for a batch size that has tried some with success."""
        return self._stop_rule.num_trials >= MIN_STEPS and may_be_trial()

    def _root_called(self) -> None:
        """A forward pass begins; what follows the training has shown enough after `MAX_CALLS_AFTER` of them."""
        if self.is_over:
            self._num_calls_after += 1
            if self._num_calls_after > MAX_CALLS_AFTER:
                raise StopSimulation("steady")

    def _end_step(self) -> None:
        step, is_in_search = self._on_step_end(self.step), may_be_trial()
        reason = self._stop_rule.reason_to_stop(step, may_be_trial=is_in_search)
        reason, self._enough = reason or self._enough, None
        self._allowance.step_ended()
        self.is_over = False
        if (reason == "steady" or (reason == "unsteady" and not is_in_search)) and self._goes_on(reason):
            reason = None
        if reason:
            self._tell_growth()
            raise StopSimulation(reason)
        self.step += 1

    def _goes_on(self, reason: str) -> bool:
        """Whether more is run after a step that is enough of its kind, for `reason`."""
        left = 0 if self._is_last_round() else self._rounds_left() if self._has_more() else None
        if left is not None and self._allowance.covers(left):
            self.is_over = left == 0
            return True
        if not self._stop_rule.growth_bytes and self._larger_come(self._allowance.covers):
            self._enough = reason
        return self._enough is not None

    def _tell_growth(self) -> None:
        if self._stop_rule.growth_bytes:
            self._on_growth(self._stop_rule.growth_bytes)
