"""Writes the OOM capsule of this process: when its allocator gives up, before anything is freed, and at its end."""

import itertools
import os
import time
import traceback
from collections import deque
from collections.abc import Callable
from pathlib import Path
from types import FrameType

from peaksight.live import running, surroundings
from peaksight.live.capsule_file import CapsuleFile, append_line
from peaksight.live.capsule_snapshot import put_snapshot
from peaksight.live.card import card_of, versions
from peaksight.live.disguises import sign_of, signing
from peaksight.live.history import History, keep_history
from peaksight.live.history_cost import HistoryWhereAffordable
from peaksight.live.out_of_memory import Moment
from peaksight.live.recorder import Recorder
from peaksight.overlays.late_imports import change_modules
from peaksight.overlays.patches import Patches
from peaksight.records.capsule import (
    SUFFIX,
    CapsuleEnding,
    CapsuleFailure,
    CapsuleRun,
    Sign,
    part_of,
)
from peaksight.records.plan_file import digest_of_script
from peaksight.records.watched import Line, WatchedEnd, WatchedProcess, WatchedStep

# What all capsules of a process may take together: scripts that get over running out of memory do so again and again.
SECONDS_OF_ALL = 30.0
SECONDS_OF_ONE = 10.0
NUM_STEPS = 50
# About what a few steps of a large model allocate; an event with its stack takes about one KiB of the host's memory.
MAX_EVENTS = 50_000
_MOST_LETTERS = 20_000


def keep_capsule(recorder: Recorder, directory: Path, patches: Patches, *, say: Callable[[str], None]) -> None:
    """Have `recorder` write a capsule in `directory` when memory runs out, until `patches` is left."""
    capsule = OomCapsule(directory, recorder.process, say=say)
    recorder.sinks.append(capsule)
    recorder.on_out_of_memory.append(lambda _, moment: capsule.observed(moment))
    recorder.on_handled.append(capsule.handled_in)
    recorder.on_failure.append(lambda _, error: capsule.failed(error))
    history = History()
    recorder.watchers.append(HistoryWhereAffordable(history))
    change_modules(patches, {"torch": lambda _: keep_history(history, patches, MAX_EVENTS, capsule.guarded)})


class OomCapsule:
    """The capsule of `process` in `directory`; as a sink of its recorder it knows the last steps, and the end.

    Nothing of it raises, and nothing changes what the script sees; what goes wrong is told to `say` once.
    """

    def __init__(self, directory: Path, process: WatchedProcess, *, say: Callable[[str], None]) -> None:
        """Nothing is written before there is a failure."""
        self.name = f"the OOM capsule in {directory}"
        self.path: Path | None = None
        self._directory = directory
        self._process = process
        self._say = say
        self._host_at_start = surroundings.host_memory()
        self._script_digest = digest_of_script(process.argv[0] if process.argv else "")
        self._working_directory = os.getcwd()
        self._steps: deque[WatchedStep] = deque(maxlen=NUM_STEPS)
        self._seconds_left = SECONDS_OF_ALL
        self._num_failures = self._num_written = 0
        self._fatal: BaseException | None = None
        self._has_said = self._is_writing = False
        self._last_handled = (0, 0)

    # As a sink.

    def write(self, line: Line) -> None:
        """Keep a step; add the end to a capsule that there is."""
        if isinstance(line, WatchedStep):
            self._steps.append(line)
        elif isinstance(line, WatchedEnd) and self.path is not None:
            self.guarded(self._end, self.path, line)

    def close(self) -> None:
        """Nothing is open."""

    # As what hears of failures.

    def observed(self, moment: Moment) -> None:
        """The allocator gives up; the script's frames are those of this thread, or it waits in the main one."""
        if self._is_writing:
            return
        self._num_failures += 1
        if self._seconds_left > 0:
            self.guarded(self._write, Sign.ALLOCATOR, running.frame_of_failure(), moment)

    def handled_in(self, recorder: Recorder, error: BaseException) -> None:
        """The script handles `error`: one of memory that the allocator has not told of gets its capsule and event."""
        found = None if self._is_writing else signing(error)
        if (
            found is None
            or self._last_handled == self._key(found[0])
            or (found[1] is Sign.ALLOCATOR and self._num_failures)
        ):
            return
        self._last_handled = self._key(found[0])
        self._num_failures += 1
        if self._seconds_left > 0:
            self.guarded(self._write, found[1], _frame_of(found[0]), None, found[0])
        recorder.event("out-of-memory", f"the card is full, as {found[1]} says, and the script caught it")

    def _key(self, error: BaseException) -> tuple[int, int]:
        """Which error it is, without keeping what it holds alive."""
        return id(error), self._steps[-1].step if self._steps else 0

    def failed(self, error: BaseException) -> None:
        """An `error` ends the script: one of memory that the allocator has not told of gets its capsule here."""
        self.guarded(self._failed, error)

    def _failed(self, error: BaseException) -> None:
        self._fatal = error
        found = signing(error)
        sign = found[1] if found else None
        if (
            sign is None
            or (found and self._last_handled == self._key(found[0]))
            or (sign is Sign.ALLOCATOR and 0 < self._num_failures == self._num_written)
        ):
            return
        self._num_failures += sign is not Sign.ALLOCATOR or not self._num_failures
        self._seconds_left = max(self._seconds_left, SECONDS_OF_ONE)
        self._write(sign, _frame_of(error), error=error)

    def _write(
        self,
        sign: Sign,
        frame: FrameType | None,
        moment: Moment | None = None,
        error: BaseException | None = None,
    ) -> None:
        self._is_writing, began = True, time.monotonic()
        try:
            main = running.frame_of_main()
            failure = CapsuleFailure(
                time=time.time(),
                sign=sign,
                step=self._steps[-1].step + 1 if self._steps else 1,
                number=self._num_failures,
                requested_bytes=moment.requested_bytes if moment else None,
                card=card_of(moment.device, moment.free_bytes) if moment else card_of(None, None),
                error=type(error).__name__ if error is not None else "",
                message=_text(error),
                stack=running.stack_of(frame),
                main_stack=running.stack_of(main),
                modules=running.modules_running(frame) or running.modules_running(main),
            )
            self._put(failure)
            self._num_written = self._num_failures
        finally:
            self._seconds_left -= time.monotonic() - began
            self._is_writing = False

    def _put(self, failure: CapsuleFailure) -> None:
        """Write all of it, and of a snapshot as much as there is room and time for."""
        self._directory.mkdir(parents=True, exist_ok=True)
        path = self.path or _new_path(self._directory, self._process)
        file = CapsuleFile(path, seconds=min(SECONDS_OF_ONE, max(1.0, self._seconds_left)))
        try:
            file.write("run", self._run())
            file.write("failure", failure)
            file.write("steps", {"steps": list(self._steps)})
            file.finish(left_out=put_snapshot(file, failure.card))
        except BaseException:
            file.abandon()
            raise
        self.path = path

    def _run(self) -> CapsuleRun:
        return CapsuleRun(
            process=self._process,
            directory=self._working_directory,
            script_digest=self._script_digest,
            scheduler=surroundings.scheduler(),
            host=surroundings.host_memory(),
            host_at_start=self._host_at_start,
            **versions(),
        )

    def _end(self, path: Path, end: WatchedEnd) -> None:
        error = self._fatal
        ending = CapsuleEnding(
            time=end.time,
            step=end.step,
            exit_code=end.exit_code,
            error=type(error).__name__ if error is not None else "",
            message=_text(error),
            is_out_of_memory=error is not None and sign_of(error) is not None,
            host=surroundings.host_memory(),
        )
        append_line(path, "ending", ending)

    def guarded(self, call: Callable[..., None], *args: object) -> None:
        """Call it; what fails is said, once: the training goes on."""
        try:
            call(*args)
        except Exception as error:
            if not self._has_said:
                self._has_said = True
                cause = getattr(error, "strerror", None) or f"{type(error).__name__}: {error}"
                self._say(f"{self.name} is missing or not whole: {cause}; the script goes on")


def _new_path(directory: Path, process: WatchedProcess) -> Path:
    """One that nobody has: another run may have had the same number of a process."""
    name = f"rank{process.rank}.{process.host}.{process.pid}"
    names = itertools.chain([name], (f"{name}-{number}" for number in itertools.count(2)))
    paths = (directory / f"{name}{SUFFIX}" for name in names)
    return next(path for path in paths if not path.exists() and not part_of(path).exists())


def _frame_of(error: BaseException) -> FrameType | None:
    """The frame in which `error` was raised."""
    innermost, trace = None, error.__traceback__
    while trace is not None:
        innermost, trace = trace.tb_frame, trace.tb_next
    return innermost


def _text(error: BaseException | None) -> str:
    return "".join(traceback.format_exception_only(error))[:_MOST_LETTERS].strip() if error is not None else ""
