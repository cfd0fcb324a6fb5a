"""The ledger: every block of a card in the run, from the allocator to the record in the capture."""

from collections.abc import Callable

from peaksight.allocator.blocks import Block
from peaksight.allocator.caching import CachingAllocator
from peaksight.allocator.device import DeviceOutOfMemory
from peaksight.allocator.settings import Settings, settings_text
from peaksight.records import Action, AllocatorCall, Role, StepPeak
from peaksight.virtual_gpu.memory.births import Birth, Circumstances
from peaksight.virtual_gpu.memory.peaks import Peaks, StepSoFar
from peaksight.virtual_gpu.memory.recorded_streams import RecordedStreams
from peaksight.virtual_gpu.memory.storages import Storages
from peaksight.virtual_gpu.memory_history.history import History

_ASKS = (Action.OUTSIDE, Action.FAILED)


class Ledger:
    """What was asked of one card: blocks of the simulated caching allocator, those of `storages` and others.

    Ticks count what is asked of the card: an allocation, a free or an `AllocatorCall` is one tick.
    """

    def __init__(
        self,
        allocator: CachingAllocator,
        circumstances: Callable[[], Circumstances],
        *,
        on_first_use: Callable[[], None],
        on_failure: Callable[[DeviceOutOfMemory, str], None],
        on_done_without: Callable[[DeviceOutOfMemory], None],
        device: int = 0,
    ) -> None:
        """Blocks come from `allocator`, that of card number `device`; `circumstances` is asked at every birth.

        `on_first_use` is called before anything is asked of the card. `on_failure` hears of an allocation for an
        operator that the card cannot serve: it raises, or lifts the limit. `on_done_without` hears of one that the
        operator does without.
        """
        self.device = device
        self.allocator = allocator
        self.births: list[Birth] = []
        self.calls: list[AllocatorCall] = []
        self.peaks = Peaks()
        self.stream = 0
        self.recorded_streams = RecordedStreams(allocator, device)
        self.storages = Storages(self.allocate, self.free)
        self.history: History | None = None
        self._circumstances = circumstances
        self._on_first_use: Callable[[], None] | None = on_first_use
        self._on_failure = on_failure
        self._on_done_without = on_done_without
        self._tick = 0
        self.steps: list[StepPeak] = []
        self._step = self._next_step()

    @property
    def is_used(self) -> bool:
        """Whether anything was asked of the card yet."""
        return self._on_first_use is None

    @property
    def was_asked(self) -> bool:
        """Whether the card was asked for memory, and be it in vain."""
        return bool(self.births) or any(call.action in _ASKS for call in self.calls)

    # Blocks.

    def allocate(self, num_bytes: int, op: str, role: Role = Role.UNMARKED) -> Birth:
        """Take a block for `op` on the current stream."""
        if self._on_first_use is not None:
            self._start()
        return self._handed_out(self._malloc(num_bytes, op), num_bytes, op, role)

    def attempt(self, num_bytes: int, op: str, role: Role) -> Birth | None:
        """As `allocate`, for what `op` does without: None where the card has not so much, its cache given back."""
        if self._on_first_use is not None:
            self._start()
        try:
            birth = self._handed_out(self._counted_malloc(num_bytes), num_bytes, op, role)
        except DeviceOutOfMemory as error:
            self.note(Action.DONE_WITHOUT, num_bytes, op)
            self._on_done_without(error)
            return None
        birth.dispensable = True
        return birth

    def _handed_out(self, block: Block, num_bytes: int, op: str, role: Role) -> Birth:
        if self.history is not None:
            self.history.allocated(block)
        self._tick += 1
        about = self._circumstances()
        birth = Birth(
            self._tick, block, block.size, num_bytes, self.stream, about.step, about.phase,
            about.grad_enabled, op, about.module, about.lines, role, node=about.node,
        )  # fmt: skip
        self.births.append(birth)
        self._step.note(self.allocator, self._tick, self.peaks)
        if self.recorded_streams.awaiting:  # those that the allocator has waited for, too
            self._process_events()
        return birth

    def free(self, birth: Birth) -> None:
        """Give a block back."""
        self._tick += 1
        birth.died = self._tick
        if self.history is not None:
            self.history.free_requested(birth.block)
        self.allocator.free_requested(birth.block)
        if not self.recorded_streams.free_requested(birth):
            self._free_completed(birth)

    def _free_completed(self, birth: Birth) -> None:
        if self.history is not None:
            self.history.free_completed(birth.block, birth.requested_bytes)
        self.allocator.free_completed(birth.block)

    def _process_events(self) -> None:
        """What the streams that used it are done with is reusable, as `process_events` in C++."""
        for birth in self.recorded_streams.completed():
            self._tick += 1
            birth.reusable = self._tick
            self._free_completed(birth)

    def empty_cache(self, *, by_script: bool = True) -> None:
        """Return cached segments to the device, as `torch.cuda.empty_cache` does; PyTorch's own calls have no line."""
        self.allocator.empty_cache()
        self._process_events()
        if self.history is not None:
            self.history.cache_emptied()
        self.note(Action.EMPTY_CACHE, what=self._circumstances().lines.source if by_script else "")

    def take_outside(self, what: str, num_bytes: int) -> bool:
        """Take device memory for the library `what`, outside the allocator; False if the card has not so much left."""
        if self._on_first_use is not None:
            self._start()
        if not self.allocator.take_outside(num_bytes):
            return False
        self.note(Action.OUTSIDE, num_bytes, what)
        return True

    def refuse(self, fail: Callable[[], None]) -> None:
        """From here on, `fail` is called before anything is asked of the card, and raises."""

        def again() -> None:
            self._on_first_use = again
            fail()

        self._on_first_use = again

    def set_memory_fraction(self, fraction: float) -> None:
        """Reserve at most `fraction` of the card from here on, as `torch.cuda.set_per_process_memory_fraction` says."""
        self._start()
        self.allocator.set_memory_fraction(fraction)
        self.note(Action.ALLOWED, self.allocator.allowed_bytes or 0)

    def begin(self, settings: Settings) -> None:
        """Let the allocator start by `settings`, those of the process."""
        self.allocator.begin(settings)
        self.note(Action.SETTINGS, what=settings_text(settings))
        if self.allocator.allowed_bytes is not None:
            self.note(Action.ALLOWED, self.allocator.allowed_bytes)

    def apply_settings(self, settings: Settings) -> None:
        """Let the allocator work by `settings` from here on."""
        self._start()
        self.allocator.apply(settings)
        self.note(Action.SETTINGS, what=settings_text(settings))

    def lift_limit(self) -> None:
        """Let the card serve everything from here on."""
        self.allocator.lift_limits()

    @property
    def tick(self) -> int:
        """The last tick."""
        return self._tick

    def note(self, action: Action, num_bytes: int = 0, what: str = "") -> None:
        """Keep an `AllocatorCall` that has happened."""
        self._tick += 1
        call = AllocatorCall(tick=self._tick, action=action, bytes=num_bytes, stream=self.stream, what=what)
        self.calls.append(call)

    def _start(self) -> None:
        start, self._on_first_use = self._on_first_use, None
        if start is not None:
            start()

    def _malloc(self, num_bytes: int, op: str) -> Block:
        try:
            return self._counted_malloc(num_bytes)
        except DeviceOutOfMemory as error:
            failed = error.with_traceback(None)  # whose frames would keep tensors alive
        self._on_failure(failed, op)
        return self.allocator.malloc(num_bytes, self.stream)

    def _counted_malloc(self, num_bytes: int) -> Block:
        if self.recorded_streams.awaiting:
            self._process_events()
        num_retries = self.allocator.num_alloc_retries
        block = self.allocator.malloc(num_bytes, self.stream)
        self._step.num_alloc_retries += self.allocator.num_alloc_retries - num_retries
        return block

    # Steps and peaks.

    def backward_began(self) -> None:
        """Remember the tick at which a backward pass starts."""
        self._step.backward_began.append(self._tick)

    def end_step(self, step: int, *, may_be_trial: bool = False) -> StepPeak:
        """Close `step` and begin the next; returns its peaks."""
        self.steps.append(self._step.record(step, self._tick, complete=True, may_be_trial=may_be_trial))
        self._step = self._next_step()
        return self.steps[-1]

    def end(self, step: int) -> None:
        """Close the run: what came after the last optimizer step belongs to `step` when it allocated anything."""
        if self.births and self.births[-1].born >= self._step.first_tick:
            self.steps.append(self._step.record(step, self._tick, complete=False))
        for birth in self.recorded_streams.never_completed():
            birth.reusable = self._tick + 1

    def begin_step_anew(self) -> None:
        """What came so far in this step is not to be in its peaks: those are from the next allocation on."""
        self._step.begin_anew()

    def _next_step(self) -> StepSoFar:
        allocated, reserved = self.allocator.allocated_bytes, self.allocator.reserved_bytes
        return StepSoFar(first_tick=self._tick + 1, allocated_bytes=allocated, reserved_bytes=reserved)
