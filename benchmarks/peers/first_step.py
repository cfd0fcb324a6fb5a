"""Runs a measured script without GPU, data or its own knowledge, and hands over what it trains.

Peers want a model, its optimizer and a batch in hand, where peaksight takes the script. So every script runs as it is
under `FakeTensorMode`, on a CPU that is called `cuda`, up to the first call of its model in a training step.
"""

import os
import runpy
import sys
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from typing import Any
from unittest.mock import patch

import torch
from torch._subclasses import FakeTensorMode
from torch.overrides import TorchFunctionMode
from torch.utils._pytree import tree_leaves

from benchmarks.accuracy.workloads import SCRIPTS, Workload
from benchmarks.peers.fake_modules import convert_modules


@dataclass(frozen=True, slots=True, kw_only=True)
class TrainingStep:
    """A model about to be called in training, with the arguments of that call, all of them fake tensors."""

    model: torch.nn.Module
    optimizers: list[torch.optim.Optimizer]
    args: tuple[Any, ...]
    kwargs: dict[str, Any]
    autocast_dtype: torch.dtype | None

    @property
    def tensors(self) -> list[torch.Tensor]:
        """The tensors among the arguments."""
        return [leaf for leaf in tree_leaves((self.args, self.kwargs)) if isinstance(leaf, torch.Tensor)]

    @property
    def batch(self) -> torch.Tensor | None:
        """The first argument, if it is a tensor: the images or tokens of a batch."""
        first = next(iter((*self.args, *self.kwargs.values())), None)
        return first if isinstance(first, torch.Tensor) else None


def first_step_of(workload: Workload) -> TrainingStep:
    """Run the script until its model is called for the first time, and no further."""

    def stop(step: TrainingStep) -> None:
        raise _ReachedError(step)

    try:
        run_script(workload, stop)
    except _ReachedError as reached:
        return reached.step
    raise RuntimeError("the script ended before it called a model in training")


def run_script(workload: Workload, at_step: Callable[[TrainingStep], None]) -> None:
    """Run the whole script; `at_step` is called before each training call of its model."""
    with ExitStack() as stack:
        stack.enter_context(FakeTensorMode())
        stack.enter_context(_OnTheCpu())
        stack.enter_context(_watched(at_step))
        for patched in _patches(workload):
            stack.enter_context(patched)
        os.chdir(SCRIPTS)
        runpy.run_path(workload.words[0], run_name="__main__")


class _ReachedError(BaseException):
    """Ends the script; no `except Exception` of it may catch this."""

    def __init__(self, step: TrainingStep) -> None:
        super().__init__()
        self.step = step


class _OnTheCpu(TorchFunctionMode):
    """Makes `cuda` mean `cpu`: autograd refuses fake tensors of a device that the machine lacks."""

    def __torch_function__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        if func is torch.Tensor.cuda:
            return args[0]
        return func(*map(_on_cpu, args), **{key: _on_cpu(value) for key, value in (kwargs or {}).items()})


def _on_cpu(argument: Any) -> Any:
    is_device = isinstance(argument, str | torch.device) and str(argument).partition(":")[0] == "cuda"
    return type(argument)("cpu") if is_device else argument


@contextmanager
def _watched(at_step: Callable[[TrainingStep], None]) -> Iterator[None]:
    """Notice every optimizer, and the model: what is called first in training once there is one."""
    optimizers: list[torch.optim.Optimizer] = []
    models: list[torch.nn.Module] = []
    make, call = torch.optim.Optimizer.__init__, torch.nn.Module.__call__

    def made(self: torch.optim.Optimizer, *args: Any, **kwargs: Any) -> None:
        make(self, *args, **kwargs)
        optimizers.append(self)

    def called(self: torch.nn.Module, *args: Any, **kwargs: Any) -> Any:
        if optimizers and self.training and (not models or self is models[0]):
            models[:] = [self]
            dtype = torch.get_autocast_dtype("cpu") if torch.is_autocast_enabled("cpu") else None
            at_step(TrainingStep(model=self, optimizers=optimizers, args=args, kwargs=kwargs, autocast_dtype=dtype))
        return call(self, *args, **kwargs)

    with patch.object(torch.optim.Optimizer, "__init__", made), patch.object(torch.nn.Module, "__call__", called):
        yield


def _patches(workload: Workload) -> Iterator[Any]:
    """What fake tensors on a CPU need of a script: values to print, one process, casts."""
    yield patch.object(sys, "argv", list(workload.words))
    yield patch.object(sys, "path", [str(SCRIPTS), *sys.path])
    yield patch.object(torch.Tensor, "item", lambda self: 0.5 if self.is_floating_point() else 1)
    yield patch.object(torch.Tensor, "__float__", lambda self: 0.5)
    yield patch.object(torch.Tensor, "__bool__", lambda self: False)
    yield patch.object(torch.nn.Module, "to", _moved_to_cpu(torch.nn.Module.to))
    yield patch.object(torch.nn.Module, "cuda", lambda self, device=None: self)
    yield patch.object(torch.autocast, "__init__", _moved_to_cpu(torch.autocast.__init__))
    yield patch.object(torch.utils.data.DataLoader, "__init__", _in_this_process(torch.utils.data.DataLoader.__init__))
    yield convert_modules()


def _moved_to_cpu(method: Callable[..., Any]) -> Callable[..., Any]:
    def moved(self: Any, *args: Any, **kwargs: Any) -> Any:
        return method(self, *map(_named_cpu, args), **{key: _named_cpu(value) for key, value in kwargs.items()})

    return moved


def _named_cpu(argument: Any) -> Any:
    return "cpu" if _on_cpu(argument) is not argument else argument


def _in_this_process(method: Callable[..., Any]) -> Callable[..., Any]:
    def made(self: Any, *args: Any, **kwargs: Any) -> None:
        method(self, *args, **kwargs | {"num_workers": 0, "pin_memory": False})

    return made
