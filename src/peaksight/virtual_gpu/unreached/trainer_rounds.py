"""How many steps a library's training loop has left before it evaluates, by what its trainer says."""

from collections.abc import Callable
from types import FrameType
from typing import Any

from peaksight.virtual_gpu.unreached.schedules import receiver


def rounds_of_trainer(frame: FrameType) -> int | None:
    """Those of the trainer whose method runs in `frame`, None where it is none that is known."""
    rounds = _ROUNDS.get(frame.f_globals.get("__name__", ""))
    trainer = receiver(frame) if rounds is not None else None
    return rounds(trainer) if rounds is not None and trainer is not None else None


def _of_transformers(trainer: Any) -> int | None:
    """As `DefaultFlowCallback` decides: the step that ends is not counted yet."""
    arguments, state = trainer.args, trainer.state
    step, strategy = state.global_step + 1, str(arguments.eval_strategy.value)
    every = {
        "steps": int(state.eval_steps or 0),
        "epoch": -(-state.max_steps // max(1, int(arguments.num_train_epochs))) if arguments.max_steps <= 0 else 0,
    }.get(strategy, 0)
    return min(-step % every, state.max_steps - step) if every else state.max_steps - step


def _of_lightning(loop: Any) -> int | None:
    """Up to the end of the epoch."""
    batches = loop.trainer.num_training_batches
    return int(batches - loop.batch_progress.current.ready) if batches != float("inf") else None


_ROUNDS: dict[str, Callable[[Any], int | None]] = {
    "transformers.trainer": _of_transformers,
    "lightning.pytorch.loops.training_epoch_loop": _of_lightning,
    "pytorch_lightning.loops.training_epoch_loop": _of_lightning,
}
