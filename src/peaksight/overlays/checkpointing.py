"""Activation checkpointing of named modules: their activations are computed again in the backward pass."""

import functools
import inspect
from collections.abc import Callable, Iterable, Iterator
from contextlib import AbstractContextManager, contextmanager
from functools import partial
from typing import Any

import torch
from torch import nn
from torch.nn.modules.batchnorm import _NormBase
from torch.utils.checkpoint import checkpoint

from peaksight.overlays import checkpoint_policies
from peaksight.overlays.modules import when_called
from peaksight.overlays.patches import Patches

_FLAG = "_checkpointed_by_plan"
# What layers of transformers, of all its releases, call the cache of keys and values that they add to.
_CACHES = {"past_key_values", "past_key_value", "layer_past"}
_NO_PARTS = (torch.Tensor, int, str, torch.dtype, torch.device)


def apply(patches: Patches, note: Callable[[], None], *, modules: Iterable[str], save: Iterable[str] = ()) -> None:
    """Checkpoint the modules with these paths, without reentrance, until `patches` is left.

    Args:
        save: What each keeps nevertheless: the results of these groups of operators (`checkpoint_policies.GROUPS`).
    """
    contexts = partial(_contexts, policy=checkpoint_policies.policy_saving(save))

    def mark(module: nn.Module) -> None:
        norms = [each for each in module.modules() if isinstance(each, _NormBase) and each.track_running_stats]
        setattr(module, _FLAG, partial(checkpoint, use_reentrant=False, context_fn=partial(contexts, norms)))
        _checkpoint_class(patches, type(module))
        note()

    when_called(patches, modules, mark)


def _checkpoint_class(patches: Patches, cls: type[nn.Module]) -> None:
    """Let modules of `cls` with the flag run checkpointed.

    The class is changed rather than the module, so that a copy of a module runs its own weights. What runs twice is
    `forward`, without the hooks around it.
    """
    forward: Any = cls.forward
    if getattr(forward, "is_checkpointed", False):
        return
    runs_twice = _with_own_cache(forward)

    @functools.wraps(forward)
    def checkpointed(module: Any, *args: Any, **kwargs: Any) -> Any:
        how = vars(module).get(_FLAG)
        if how is None or not torch.is_grad_enabled():
            return forward(module, *args, **kwargs)
        return how(partial(runs_twice, module), *args, **kwargs)

    checkpointed.is_checkpointed = True  # type: ignore[attr-defined]
    patches.set(cls, "forward", checkpointed)


def _with_own_cache(forward: Callable[..., Any]) -> Callable[..., Any]:
    """`forward` with a copy of a cache of keys and values: to the script's own they would be added twice."""
    places = [place for place, name in enumerate(inspect.signature(forward).parameters) if name in _CACHES]

    def called(*args: Any, **kwargs: Any) -> Any:
        for name in _CACHES & kwargs.keys():
            kwargs[name] = _copied(kwargs[name])
        if any(place < len(args) for place in places):
            args = tuple(_copied(arg) if place in places else arg for place, arg in enumerate(args))
        return forward(*args, **kwargs)

    return called


def _copied(cache: Any) -> Any:
    """A cache, or a part of one, with the same tensors; tuples of them cannot be added to.

    A cache has a part for each layer, and each layer that is checkpointed copies it twice.
    """
    if cache is None or isinstance(cache, _NO_PARTS):
        return cache
    if isinstance(cache, list):
        return [_copied(each) for each in cache]
    if isinstance(cache, dict):
        return dict(cache)
    if not hasattr(cache, "get_seq_length"):
        return cache
    new = object.__new__(type(cache))
    vars(new).update((name, _copied(value)) for name, value in vars(cache).items())
    return new


Contexts = tuple[AbstractContextManager[Any], AbstractContextManager[Any]]


def _contexts(norms: list[Any], policy: Callable[[], Contexts]) -> Contexts:
    """What is around the forward of a module with these `norms` and around its recomputation."""
    forward, recomputation = policy()
    return forward, _both(_statistics_kept(norms), recomputation) if norms else recomputation


@contextmanager
def _both(first: AbstractContextManager[Any], second: AbstractContextManager[Any]) -> Iterator[None]:
    with first, second:
        yield


@contextmanager
def _statistics_kept(norms: list[Any]) -> Iterator[None]:
    """The recomputation normalises with the statistics of the same batch, and must not count that batch again."""
    before = [(norm.momentum, norm.num_batches_tracked) for norm in norms]
    for norm in norms:
        norm.momentum, norm.num_batches_tracked = 0.0, None
    try:
        yield
    finally:
        for norm, (momentum, count) in zip(norms, before, strict=True):
            norm.momentum, norm.num_batches_tracked = momentum, count
