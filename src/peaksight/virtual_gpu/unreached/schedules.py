"""What the trainer of a library does now and then: its settings say when, and no line of the person's."""

from collections.abc import Callable, Iterator
from types import FrameType
from typing import Any

from peaksight.records import NotReached
from peaksight.virtual_gpu.frames import variables_of
from peaksight.virtual_gpu.source_lines import SourceLines

# Says what a trainer has not come to, once the run is over.
_Missed = Callable[[], Iterator[str]]


class Schedules:
    """The trainers that were seen at work, each with the person's line that had it train."""

    def __init__(self, lines: SourceLines) -> None:
        """`lines` names the person's lines."""
        self._lines = lines
        self._found: dict[tuple[str, int], _Missed] = {}

    def look(self, frames: list[FrameType]) -> None:
        """A step of `frames`, outermost first, ends: note whose it is."""
        at = ""
        for frame in frames:
            schedule = _SCHEDULES.get(frame.f_globals.get("__name__", ""))
            if self._lines.is_own(frame.f_code.co_filename):
                at = f"{self._lines.name_of(frame.f_code.co_filename)}:{frame.f_lineno}"
            elif schedule and at and (trainer := receiver(frame)) is not None:
                if (at, id(trainer)) not in self._found:
                    self._found[at, id(trainer)] = schedule(trainer)
                return

    def missed(self) -> Iterator[NotReached]:
        """What those trainers would still have come to."""
        for (at, _), missed in self._found.items():
            yield from (NotReached(at=at, text=text) for text in missed())


def receiver(frame: FrameType) -> Any:
    """What a method is called on."""
    return variables_of(frame).get("self") if frame.f_code.co_varnames[:1] == ("self",) else None


def _of_transformers(trainer: Any) -> _Missed:
    """By `TrainingArguments`, as `DefaultFlowCallback` decides."""
    arguments, state = trainer.args, trainer.state
    first_step, first_epoch = state.global_step, int(state.epoch or 0)

    def has_come(strategy: str, every: float, delay: float) -> bool:
        if state.global_step >= state.max_steps:
            return True
        if strategy == "epoch":
            return int(state.epoch or 0) > max(first_epoch, delay - 1)
        return any(step % every == 0 and step >= delay for step in range(first_step + 1, state.global_step + 1))

    def missed() -> Iterator[str]:
        evaluates, saves = (str(getattr(arguments, f"{kind}_strategy").value) for kind in ("eval", "save"))
        has_evaluated = has_come(evaluates, state.eval_steps, arguments.eval_delay)
        if evaluates != "no" and not has_evaluated:
            yield _setting("Trainer evaluates", "eval", evaluates, state.eval_steps)
        if saves != "no" and not (has_evaluated if saves == "best" else has_come(saves, state.save_steps, 0)):
            yield _setting("Trainer saves", "save", saves, state.save_steps)
        if arguments.load_best_model_at_end and state.global_step < state.max_steps:
            yield "Trainer loads the best model: load_best_model_at_end=True"

    return missed


def _setting(what: str, kind: str, strategy: str, every: float) -> str:
    steps = f", {kind}_steps={every}" if strategy == "steps" else ""
    return f'{what}: {kind}_strategy="{strategy}"{steps}'


def _of_lightning(trainer: Any) -> _Missed:
    """By callbacks; what a LightningModule validates is a hook of the person's."""
    checkpoints = list(trainer.checkpoint_callbacks)

    def missed() -> Iterator[str]:
        for each in checkpoints:
            has_saved = getattr(each, "best_model_path", True) or each.last_model_path
            if not has_saved and (each.save_top_k or each.save_last):
                yield "Trainer saves: ModelCheckpoint"

    return missed


_SCHEDULES: dict[str, Callable[[Any], _Missed]] = {
    "transformers.trainer": _of_transformers,
    "lightning.pytorch.trainer.trainer": _of_lightning,
    "pytorch_lightning.trainer.trainer": _of_lightning,
}
