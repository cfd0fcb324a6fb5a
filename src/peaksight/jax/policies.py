"""What each policy of `jax.checkpoint` would need and cost, by tracing the function with it in place of its own."""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import jax
from jax.extend.core import ClosedJaxpr, jaxpr_as_fun
from jax.extend.core.primitives import remat_p, scan_p

from peaksight.jax.flops import flops_of
from peaksight.jax.inlining import REMATS, graph_of
from peaksight.jax.liveness import liveness_of
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
        with _in_place(getattr(jax.checkpoint_policies, name)):
            found.append(_measured(name, fn, args, jit_options))
    is_choice = len({(each.peak_bytes, each.flops) for each in found}) > 1
    return tuple(sorted(found, key=lambda each: (each.peak_bytes, each.flops))) if is_choice else tuple(found[:1])


def _measured(name: str, fn: Callable[..., Any], args: tuple[Any, ...], jit_options: dict[str, Any]) -> RematPolicy:
    def traced_anew(*args: Any, **kwargs: Any) -> Any:
        return fn(*args, **kwargs)

    traced = jax.jit(traced_anew, **jit_options).trace(*args)
    graph = graph_of(traced.jaxpr)
    flops = flops_of(graph)
    donated = [info.donated for info in jax.tree_util.tree_leaves(traced.args_info)]
    return RematPolicy(policy=name, peak_bytes=liveness_of(graph, donated=donated).peak_bytes, flops=flops)


@contextmanager
def _in_place(policy: Policy) -> Iterator[None]:
    """Let every checkpoint that is traced meanwhile have `policy`, and every scan a checkpoint."""
    bind_remat, bind_scan = remat_p.bind, scan_p.bind

    def remat(*args: Any, **params: Any) -> Any:
        is_own = not params.get("differentiated")
        return bind_remat(*args, **(params | {"policy": policy} if is_own else params))

    def scan(*args: Any, **params: Any) -> Any:
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
