"""`torch.cuda.memory._record_memory_history`, `_snapshot` and what else torch keeps about single allocations."""

from collections.abc import Sequence
from typing import Any

from torch.autograd.profiler import record_function

from peaksight.overlays.patches import Patches
from peaksight.virtual_gpu.answers.settings_answers import SettingsAnswers
from peaksight.virtual_gpu.memory.devices import Devices
from peaksight.virtual_gpu.memory.raw_memory import RawMemory
from peaksight.virtual_gpu.memory_history.history import ACTIONS, History, RecordContext
from peaksight.virtual_gpu.memory_history.snapshots import DEFAULT_POOL, memory_snapshot
from peaksight.virtual_gpu.memory_history.stacks import Frame, Frames

_CONTEXTS = {None: RecordContext.NEVER} | {context.name.lower(): context for context in RecordContext if context}


class HistoryAnswers:
    """The C functions; every ledger gets its history when one is asked for."""

    def __init__(self, devices: Devices, raw: RawMemory, settings: SettingsAnswers) -> None:
        """Of the allocators of `devices`, which work by `settings`; `raw` knows their blocks by address."""
        self._devices = devices
        self._raw = raw
        self._settings = settings
        self._metadata = ""

    def answers(self) -> dict[str, Any]:
        """By name."""
        return {
            "_cuda_record_memory_history": self._record,
            "_cuda_record_memory_history_legacy": self._record_legacy,
            "_cuda_isHistoryEnabled": self._is_enabled,
            "_cuda_memorySnapshot": self._snapshot,
            "_cuda_allocationTraceback": self._allocation_traceback,
            "_cuda_annotateMemory": self._annotate,
            "_cuda_memoryMetadataSupported": lambda: True,
            "_cuda_setMemoryMetadata": self._set_metadata,
            "_cuda_getMemoryMetadata": lambda: self._metadata,
        }

    def install(self, patches: Patches) -> None:
        """Hear of the script's annotations, `with torch.profiler.record_function("name"):`, until `patches` is left."""
        enter, leave = record_function.__enter__, record_function.__exit__

        def entered(annotation: record_function) -> record_function:
            self._pass(annotation.name, "START")
            return enter(annotation)

        def left(annotation: record_function, *exc_info: Any) -> None:
            leave(annotation, *exc_info)
            self._pass(annotation.name, "END")

        patches.set(record_function, "__enter__", entered)
        patches.set(record_function, "__exit__", left)

    def _pass(self, name: str, stage: str) -> None:
        history = self._devices.current.history
        if history is not None:
            history.passed(name, stage)

    def _record(
        self,
        enabled: str | None,
        context: str | None,
        stacks: str,
        max_entries: int,
        clear_history: bool = False,
        compile_context: bool = False,
        global_record_annotations: bool = False,
        skip_actions: Sequence[str] = (),
        record_pinned_host_memory: bool = False,
        record_cuda: bool = True,
    ) -> None:
        """As `_record_memory_history` in torch/csrc/cuda/memory_snapshot.cpp. There are no C++ frames in any stack."""
        _check(enabled in (None, "state", "all"), "expected state to be 'state', 'all', or None")
        _check(context in _CONTEXTS, "expected context to be 'state', 'alloc', 'all', or None")
        _check(stacks in ("python", "all"), "expected stacks to be 'python', or 'all'")
        self._start(
            enabled is not None and record_cuda,
            _CONTEXTS[context],
            max_entries if enabled == "all" else 1,
            clear_history,
            skip_actions,
        )

    def _record_legacy(
        self,
        enabled: bool,
        record_context: bool,
        trace_alloc_max_entries: int,
        trace_alloc_record_context: bool,
        record_context_cpp: bool = False,
        clear_history: bool = False,
        compile_context: bool = False,
        global_record_annotations: bool = False,
        skip_actions: Sequence[str] = (),
        record_pinned_host_memory: bool = False,
        record_cuda: bool = True,
    ) -> None:
        """The older form, with booleans."""
        context = RecordContext.STATE if record_context else RecordContext.NEVER
        if trace_alloc_record_context:
            context = RecordContext.ALLOC
        self._start(enabled and record_cuda, context, trace_alloc_max_entries, clear_history, skip_actions)

    def _start(
        self, enabled: bool, context: RecordContext, max_entries: int, clear: bool, skip_actions: Sequence[str]
    ) -> None:
        for action in skip_actions:
            _check(action in ACTIONS, f"Unknown TraceEntry action: {action}")
        for ledger in self._devices.ledgers:
            if ledger.history is None:
                ledger.history = History(ledger.allocator)
                ledger.history.user_metadata = self._metadata
            ledger.history.record(
                enabled=enabled, context=context, max_entries=max_entries, clear=clear, skip_actions=skip_actions
            )

    def _is_enabled(self) -> bool:
        """As `CUDACachingAllocator::isHistoryEnabled`."""
        return any(ledger.history is not None and ledger.history.is_enabled for ledger in self._devices.ledgers)

    def _snapshot(self, pool: tuple[Any, ...] | None) -> dict[str, Any]:
        """Of `pool`, a pair of integers that may be followed by whether traces are wanted; None is everything."""
        first, second, traces = _pool_and_traces(pool)
        return memory_snapshot(
            [(ledger.allocator, ledger.history) for ledger in self._devices.ledgers[: self._devices.count]],
            settings=self._settings.in_snapshot(),
            pool=(first, second),
            traces=traces,
        )

    def _allocation_traceback(self, address: int) -> list[Frame] | None:
        ledger, birth = self._raw.at(address) or (None, None)
        history = None if ledger is None else ledger.history
        stack = history.block_stack(birth.block) if birth is not None and history is not None else None
        return None if stack is None else Frames().of(stack)

    def _annotate(self, address: int, metadata: str) -> None:
        ledger, birth = self._raw.at(address) or (None, None)
        _check(birth is not None, f"annotateMemory: no live allocation found at pointer {address:#x}")
        if birth is not None and ledger is not None and ledger.history is not None:
            ledger.history.annotated(birth.block, metadata)

    def _set_metadata(self, metadata: str) -> None:
        self._metadata = metadata
        for ledger in self._devices.ledgers:
            if ledger.history is not None:
                ledger.history.user_metadata = metadata


def _pool_and_traces(pool: Any) -> tuple[int, int, bool]:
    """As `THCPModule_memorySnapshot` reads its argument."""
    if pool is None:
        return (*DEFAULT_POOL, True)
    _check(isinstance(pool, tuple), "Expected tuple or None")
    _check(len(pool) in (2, 3), "Expected tuple of size 2 or 3")
    _check(all(isinstance(part, int) for part in pool[:2]), "mempool_id elements must be integers")
    traces = pool[2] if len(pool) == 3 else True
    _check(isinstance(traces, bool), "include_traces must be a boolean")
    return pool[0], pool[1], traces


def _check(condition: bool, message: str) -> None:
    """As TORCH_CHECK."""
    if not condition:
        raise RuntimeError(message)
