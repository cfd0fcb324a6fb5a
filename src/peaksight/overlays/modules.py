"""Finding the modules that a plan names, at the first call of a model, on whatever it is wrapped in."""

import functools
import gc
from collections.abc import Callable, Iterable, Iterator
from typing import Any
from weakref import WeakSet

from torch import nn
from torch.nn.modules.module import register_module_forward_pre_hook
from torch.utils.hooks import RemovableHandle

from peaksight.overlays.patches import Patches


def when_called(patches: Patches, paths: Iterable[str], act: Callable[[nn.Module], None]) -> None:
    """Call `act` once with each module of `paths`, right before the model that holds it is first called.

    A path is as reports print it, behind the class of the root: `GPT2LMHeadModel.transformer.h.3`. What wraps the root
    (DistributedDataParallel, a PeftModel) makes no difference; each model that has such a module is acted on.
    """
    search = _Search(tuple(paths), act)
    for made in (each for each in gc.get_objects() if issubclass(type(each), nn.Module)):
        search.made(made)
    for name in ("__init__", "__setstate__"):
        patches.set(nn.Module, name, _telling(getattr(nn.Module, name), search.made))
    patches.callback(search.stop)


def _telling(make: Callable[..., None], made: Callable[[nn.Module], None]) -> Callable[..., None]:
    @functools.wraps(make)
    def making(module: nn.Module, *args: Any, **kwargs: Any) -> None:
        made(module)
        make(module, *args, **kwargs)

    return making


class _Search:
    """A hook that looks into each module that is called from outside of those that it has looked into.

    With it every call of a module takes longer, so it is there only while there is a root that it has not seen.
    """

    def __init__(self, paths: tuple[str, ...], act: Callable[[nn.Module], None]) -> None:
        self._paths, self._act = paths, act
        self._roots = {path.partition(".")[0] for path in paths}
        self._waiting: WeakSet[nn.Module] = WeakSet()
        self._seen: WeakSet[nn.Module] = WeakSet()
        self._hook: RemovableHandle | None = None

    def made(self, module: nn.Module) -> None:
        """There is another module."""
        if type(module).__name__ in self._roots:
            self._waiting.add(module)
            self._hook = self._hook or register_module_forward_pre_hook(self)

    def stop(self) -> None:
        """See no more calls until the next root is made."""
        if self._hook is not None:
            self._hook.remove()
            self._hook = None

    def __call__(self, module: nn.Module, args: object) -> None:
        if module not in self._seen:
            for found in find_modules(module, self._paths):
                if found not in self._seen:
                    self._act(found)
            self._seen.update(module.modules())
            self._waiting -= self._seen
        if not self._waiting:
            self.stop()


def find_modules(root: nn.Module, paths: Iterable[str]) -> Iterator[nn.Module]:
    """The modules of `root` that `paths` name, in their order."""
    outermost: dict[str, list[nn.Module]] = {}
    for path in paths:
        name, _, below = path.partition(".")
        if name not in outermost:
            outermost[name] = list(_outermost(root, name))
        for holder in outermost[name]:
            found = _submodule(holder, below)
            if found is not None:
                yield found


def _outermost(root: nn.Module, name: str) -> Iterator[nn.Module]:
    """The modules of the class `name` that are in no other one of it."""
    inside: set[nn.Module] = set()
    for module in root.modules():
        if type(module).__name__ == name and module not in inside:
            inside.update(module.modules())
            yield module


def _submodule(module: nn.Module, path: str) -> nn.Module | None:
    try:
        return module.get_submodule(path)
    except AttributeError:
        return None
