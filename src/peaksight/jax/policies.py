"""What each policy of `jax.checkpoint` would need and cost, by tracing the function with it in place of its own."""

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from functools import wraps
from typing import Any

import jax
from jax._src import api
from jax.extend.core import ClosedJaxpr, jaxpr_as_fun
from jax.extend.core.primitives import remat_p, scan_p

from peaksight.jax.flops import flops_of
from peaksight.jax.inlining import REMATS, graph_of
from peaksight.jax.liveness import liveness_of
from peaksight.overlays.patches import Patches
from peaksight.records.jax_program import RematPolicy

Policy = Callable[..., Any]
AS_WRITTEN = "as written"
NAMES = ("nothing_saveable", "dots_with_no_batch_dims_saveable", "dots_saveable", "everything_saveable")


def remat_policies(fn: Callable[..., Any], *args: Any, **jit_options: Any) -> tuple[RematPolicy, ...]:
    """The function as it is and with each policy, the lowest peak first.

    A policy is put in place of that of every `jax.checkpoint` of `fn`, and around the body of every `jax.lax.scan`
    that has none. Where there is neither, there is nothing to choose. Arguments may be shapes.
    """
    found = [_measured(AS_WRITTEN, fn, args, jit_options)]
    for name in NAMES:
        with in_place(getattr(jax.checkpoint_policies, name)):
            found.append(_measured(name, fn, args, jit_options))
    is_choice = len({(each.peak_bytes, each.flops) for each in found}) > 1
    return tuple(sorted(found, key=lambda each: (each.peak_bytes, each.flops))) if is_choice else tuple(found[:1])


@contextmanager
def around_losses(policy: Policy, tell: Callable[[], None]) -> Iterator[None]:
    """Let every function that `jax.grad` or `jax.value_and_grad` differentiates be under one checkpoint.

    `tell` is called for each.
    """
    before = jax.value_and_grad

    @wraps(before)
    def value_and_grad(fun: Callable[..., Any], argnums: Any = 0, *args: Any, **options: Any) -> Callable[..., Any]:
        tell()
        return before(_recomputed(fun, argnums, policy), argnums, *args, **options)

    with Patches() as patches:
        for module in (jax, api):
            patches.set(module, "value_and_grad", value_and_grad)
        yield


def _recomputed(fun: Callable[..., Any], argnums: Any, policy: Policy) -> Callable[..., Any]:
    """`fun` under a checkpoint of the arguments `argnums`; the others may be anything."""
    places = tuple(argnums) if isinstance(argnums, Sequence) else (argnums,)

    @wraps(fun)
    def again(*args: Any, **kwargs: Any) -> Any:
        def of_these(*given: Any) -> Any:
            full = list(args)
            for place, value in zip(places, given, strict=True):
                full[place] = value
            return fun(*full, **kwargs)

        return jax.checkpoint(of_these, policy=policy)(*(args[place] for place in places))

    return again


def _measured(name: str, fn: Callable[..., Any], args: tuple[Any, ...], jit_options: dict[str, Any]) -> RematPolicy:
    def traced_anew(*args: Any, **kwargs: Any) -> Any:
        return fn(*args, **kwargs)

    traced = jax.jit(traced_anew, **jit_options).trace(*args)
    graph = graph_of(traced.jaxpr)
    flops = flops_of(graph)
    donated = [info.donated for info in jax.tree_util.tree_leaves(traced.args_info)]
    return RematPolicy(policy=name, peak_bytes=liveness_of(graph, donated=donated).peak_bytes, flops=flops)


@contextmanager
def in_place(policy: Policy, tell: Callable[[], None] = lambda: None) -> Iterator[None]:
    """Let every checkpoint that is traced meanwhile have `policy`, and every scan one; `tell` hears of each."""
    bind_remat, bind_scan = remat_p.bind, scan_p.bind

    def remat(*args: Any, **params: Any) -> Any:
        is_own = not params.get("differentiated")
        if is_own:
            tell()
        return bind_remat(*args, **(params | {"policy": policy} if is_own else params))

    def scan(*args: Any, **params: Any) -> Any:
        tell()
        return bind_scan(*args, **(params | {"jaxpr": _checkpointed(params["jaxpr"], policy)}))

    # What an inner jit traced before would come from its cache.
    jax.clear_caches()
    remat_p.bind, scan_p.bind = remat, scan
    try:
        yield
    finally:
        del remat_p.bind, scan_p.bind
        jax.clear_caches()


def _checkpointed(body: ClosedJaxpr, policy: Policy) -> ClosedJaxpr:
    """`body` under a checkpoint; as it is, where it has one."""
    if any(eqn.primitive.name in REMATS for eqn in body.jaxpr.eqns):
        return body
    recomputed = jax.checkpoint(jaxpr_as_fun(body), prevent_cse=False, policy=policy)
    return jax.make_jaxpr(recomputed)(*body.in_avals)
