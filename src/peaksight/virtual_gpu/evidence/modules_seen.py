"""The modules of the script: what they train, and how often they are called while autograd records."""

from collections import Counter
from collections.abc import Iterator
from typing import Any
from weakref import WeakKeyDictionary

import torch
from torch import nn
from torch.utils.weak import WeakIdKeyDictionary

from peaksight.records import ModuleFact
from peaksight.virtual_gpu.training.training_loop import ModuleTree


class ModulesSeen:
    """Counts calls, and keeps what modules were like at the end of the last step."""

    def __init__(self, tree: ModuleTree) -> None:
        """Paths are those of `tree`."""
        self._tree = tree
        self._roots: WeakKeyDictionary[nn.Module, None] = WeakKeyDictionary()  # in the order of their first call
        self._calls_with_grad: Counter[int] = Counter()
        self._has_had_gradient: WeakIdKeyDictionary = WeakIdKeyDictionary()
        self._had_gradient_last: WeakIdKeyDictionary = WeakIdKeyDictionary()
        self.facts: tuple[ModuleFact, ...] = ()

    def called(self, module: nn.Module, *, is_root: bool) -> None:
        """`module` is called, from outside of any other if `is_root`."""
        if is_root:
            self._roots[module] = None
        self._calls_with_grad[id(module)] += torch.is_grad_enabled()

    def stepped(self, optimizer: torch.optim.Optimizer) -> None:
        """`optimizer` has stepped, and its gradients are still there."""
        for parameter in (each for group in optimizer.param_groups for each in group["params"]):
            had = self._has_had_gradient.get(parameter, False) or bool(optimizer.state.get(parameter))
            self._had_gradient_last[parameter] = parameter.grad is not None
            self._has_had_gradient[parameter] = had or parameter.grad is not None

    def all_modules(self) -> Iterator[nn.Module]:
        """Every module of the models that were called."""
        for root in self._models():
            yield from root.modules()

    def path_of(self, module: nn.Module) -> str:
        """The path (FQN) of `module`."""
        return self._tree.path_of(module)

    def num_calls_with_grad(self, module: nn.Module) -> int:
        """How often `module` was called in this step while autograd recorded."""
        return self._calls_with_grad[id(module)]

    def step_ends(self) -> None:
        """Keep what the modules are like now, and count anew."""
        modules = [each for each in self.all_modules() if next(each.parameters(recurse=False), None) is not None]
        self.facts = (*self._facts(modules), *self._uncalled(modules))
        self._calls_with_grad.clear()

    def _models(self) -> list[nn.Module]:
        """The roots that are no part of another one."""
        children = {id(child) for root in self._roots for child in root.modules() if child is not root}
        return [root for root in self._roots if id(root) not in children]

    def _facts(self, modules: list[nn.Module]) -> Iterator[ModuleFact]:
        known: set[int] = set()
        for module in modules:
            new = {id(each): each.numel() for each in module.parameters(recurse=False) if id(each) not in known}
            known |= new.keys()
            yield self._fact(module, sum(new.values()))

    def _fact(self, module: nn.Module, num_elements: int) -> ModuleFact:
        parameters: list[Any] = list(module.parameters(recurse=False))
        return ModuleFact(
            module=self._tree.path_of(module),
            parameter_bytes=sum(each.nbytes for each in parameters),
            frozen_bytes=sum(each.nbytes for each in parameters if self._is_frozen(each)),
            idle_bytes=sum(each.nbytes for each in parameters if self._is_idle(each)),
            num_elements=num_elements,
        )

    def _uncalled(self, modules: list[nn.Module]) -> Iterator[ModuleFact]:
        """What is idle outside of `modules`: a row without a path, of modules that were never called."""
        known = {id(each) for module in modules for each in module.parameters(recurse=False)}
        others = (each for each in self._has_had_gradient if id(each) not in known and self._is_idle(each))
        if idle := sum(each.nbytes for each in others):
            yield ModuleFact(module="", parameter_bytes=idle, frozen_bytes=0, idle_bytes=idle)

    def _is_frozen(self, parameter: Any) -> bool:
        """Whether it is not trained any more: that of a GAN has a gradient whenever its own optimizer steps."""
        return not (parameter.requires_grad or self._had_gradient_last.get(parameter, False))

    def _is_idle(self, parameter: Any) -> bool:
        return parameter.requires_grad and not self._has_had_gradient.get(parameter, True)
