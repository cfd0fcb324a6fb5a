"""Records the training of this process: gradients, updates and the facts of each optimizer step."""

import os
import sys
import weakref
from collections.abc import Callable
from pathlib import Path
from typing import Any

import torch
from torch import Tensor

from peaksight.overlays.apply import Applied
from peaksight.records.encoding import encode_json
from peaksight.records.training import Job, Outcome, TrainingRun, TrainingStep
from peaksight.verification.names import Names
from peaksight.verification.sources import digest_of_sources
from peaksight.verification.start import Start, direction, slope
from peaksight.verification.states import digest_of, random_states
from peaksight.verification.window import Window


class Recorder:
    """Listens to one process; `watching` tells it what happens."""

    def __init__(self, job: Job, script: str) -> None:
        """Record what `job` asks for, of `script`."""
        self.names = Names()
        self.window = Window()
        self._job = job
        self._script = script
        self._rank, self._world_size = int(os.environ.get("RANK", 0)), int(os.environ.get("WORLD_SIZE", 1))
        self._directory = Path(job.directory) / f"rank{self._rank}"
        self._directory.mkdir(parents=True, exist_ok=True)
        self.start = Start(job, self._rank, self.names)
        self._schedulers: list[weakref.ref[Any]] = []
        self._steps: list[TrainingStep] = []
        self._directions: dict[str, Tensor] = {}
        self._stepping = 0
        self._random_state_at_start = ""
        self._process = os.getpid()
        self.applied: Applied | None = None

    @property
    def is_elsewhere(self) -> bool:
        """Whether this is a process that the script forked, as a worker of a DataLoader."""
        return os.getpid() != self._process

    def goes_on(self) -> None:
        """Something that belongs to a step happens; where the last one was taken, the next one begins."""
        if self.window.optimizer_steps and not self._stepping:
            self._close()

    def optimizer_made(self, optimizer: torch.optim.Optimizer) -> None:
        """Name its parameters, and make them start as the job says."""
        self._know(optimizer)

    def scheduler_made(self, scheduler: Any) -> None:
        """Follow how often it steps."""
        self._schedulers.append(weakref.ref(scheduler))

    def backward_done(self, losses: list[float]) -> None:
        """A backward pass that was called on `losses` has ended."""
        self.window.losses += losses
        if not self._steps and self._directions:
            self.window.slope = slope(self.names.parameters, self._directions)

    def before_step(self, optimizer: torch.optim.Optimizer, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        """Record the gradients, or, where the optimizer computes them by a closure, have them recorded then."""
        closure = next((each for each in (*args[1:], kwargs.get("closure")) if callable(each)), None)
        if closure is None:
            self._stepping += 1
            self._record_gradients(optimizer)
            return None
        self.goes_on()
        self._stepping += 1
        recorded = self._recording(closure, optimizer)
        args = tuple(recorded if each is closure else each for each in args)
        return args, {name: recorded if each is closure else each for name, each in kwargs.items()}

    def after_step(self, optimizer: torch.optim.Optimizer) -> None:
        """Record what the optimizer made of it."""
        self._stepping -= 1
        window = self.window
        window.optimizer_steps += 1
        window.random_state = digest_of(random_states())
        for parameter in _parameters_of(optimizer):
            name = self.names.of(parameter)
            window.tensors["parameter"][name] = _copy(parameter)
            for key, value in optimizer.state.get(parameter, {}).items():
                if isinstance(value, (Tensor, int, float)):
                    window.tensors["state"][f"{name}.{key}"] = _copy(torch.as_tensor(value))
        window.tensors["buffer"] = {name: _copy(buffer) for name, buffer in self.names.buffers()}

    def finish(self, outcome: Outcome, error: str = "") -> None:
        """Write what was recorded."""
        if self.window.optimizer_steps:
            self._close_last()
        models = list(self.names.modules())
        run = TrainingRun(
            rank=self._rank,
            world_size=self._world_size,
            outcome=outcome,
            steps=tuple(self._steps),
            trainable=sum(each.numel() for each in self.names.parameters.values() if each.requires_grad),
            random_state_at_start=self._random_state_at_start,
            own_weights=self.start.own_weights,
            unmatched_weights=self.start.unmatched,
            running_statistics=any(getattr(each, "track_running_stats", False) for m in models for each in m.modules()),
            device=next((str(each.device.type) for each in self.names.parameters.values()), "cpu"),
            sources=digest_of_sources(self._script),
            error=error,
            without_effect=self.applied.without_effect() if self.applied else (),
        )
        (self._directory / "run.json").write_bytes(encode_json(run))

    def _know(self, optimizer: torch.optim.Optimizer) -> None:
        added = self.names.add(_parameters_of(optimizer))
        if not added:
            return
        self.start.prepare(added)
        if self._job.double:
            self._directions |= {name: direction(name, each) for name, each in added.items() if each.requires_grad}
        self._random_state_at_start = self._random_state_at_start or digest_of(random_states())

    def _recording(self, closure: Callable[..., Any], optimizer: torch.optim.Optimizer) -> Callable[..., Any]:
        """`closure`, of whose calls the first one gives the gradients of the step."""
        calls = 0

        def recorded(*args: Any, **kwargs: Any) -> Any:
            nonlocal calls
            loss = closure(*args, **kwargs)
            if not calls:
                self._record_gradients(optimizer)
            calls += 1
            return loss

        return recorded

    def _record_gradients(self, optimizer: torch.optim.Optimizer) -> None:
        self._know(optimizer)
        scale = getattr(optimizer, "grad_scale", None)
        self.window.lrs += tuple(float(group["lr"]) for group in optimizer.param_groups if "lr" in group)
        for parameter in _parameters_of(optimizer):
            name = self.names.of(parameter)
            if parameter.grad is not None:
                gradient = _copy(parameter.grad)
                self.window.tensors["gradient"][name] = gradient if scale is None else gradient / float(scale)
            elif parameter.requires_grad:
                self.window.without_gradient.append(name)

    def _close(self) -> None:
        """End the step, and the process with the last one: nothing that the script does at its end is wanted."""
        self._close_last()
        if len(self._steps) == self._job.steps:
            self.finish("stopped")
            sys.stdout.flush()
            sys.stderr.flush()
            os._exit(0)

    def _close_last(self) -> None:
        schedulers = [scheduler for each in self._schedulers if (scheduler := each()) is not None]
        counts = [(type(each).__name__, int(each.last_epoch)) for each in schedulers]
        torch.save(self.window.tensors, self._directory / f"step{len(self._steps) + 1}.pt")
        self._steps.append(self.window.record(counts))
        self.window = Window()


def _parameters_of(optimizer: torch.optim.Optimizer) -> list[Tensor]:
    return [parameter for group in optimizer.param_groups for parameter in group["params"]]


def _copy(tensor: Tensor) -> Tensor:
    """Its values as they are, on the CPU and whole."""
    tensor = tensor.detach()
    tensor = tensor.full_tensor() if hasattr(tensor, "full_tensor") else tensor
    return (tensor.to_dense() if tensor.is_sparse else tensor).to("cpu", copy=True)
