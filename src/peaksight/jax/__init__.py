"""Jitted training programs of JAX: what they need, from their jaxpr and from XLA.

`predict`, `remat_policies` and `verify` are the entry points for programs: importing this imports no JAX.
"""

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from peaksight.records import Report
    from peaksight.records.certificate import Certificate
    from peaksight.records.jax_program import RematPolicy

__all__ = ["predict", "remat_policies", "verify"]


def predict(
    fn: Any,
    *args: Any,
    gpu: str = "h100-80gb",
    memory_bytes: int | None = None,
    reserved_by_others_bytes: int = 0,
    **jit_options: Any,
) -> "Report":
    """The report of one call of `fn` on a virtual card: `report.peak.allocated_bytes`, `report.live_at_peak`, ...

    Args:
        fn: A function to be jitted with `jit_options` (`donate_argnums`, `static_argnums`, `in_shardings`, ...), or one
            that `jax.jit`, `nnx.jit` or `eqx.filter_jit` returned.
        args: What it is called with: arrays, or `jax.ShapeDtypeStruct`s, from `jax.eval_shape` for instance. No array
            is read, and nothing is put on a device. Sharded ones stand for as many cards as their mesh has devices.
        gpu: The card, see `peaksight gpus`.
        memory_bytes: The card's total memory; None: its own.
        reserved_by_others_bytes: What other processes hold of it.

    Raises:
        UsageError: an unknown card.
        UnsupportedError: the function cannot be traced, or not compiled for that card.
    """
    from peaksight.diagnosis.diagnose import explained_report
    from peaksight.gpus import find_card, room_on
    from peaksight.jax.predicting import capture_of_call

    card = find_card(gpu)
    if memory_bytes is not None:
        from dataclasses import replace

        card = replace(card, total_bytes=memory_bytes)
    room = room_on(card, others_bytes=reserved_by_others_bytes)
    return explained_report([capture_of_call(fn, args, room, **jit_options)], room)


def remat_policies(fn: Any, *args: Any, **jit_options: Any) -> "tuple[RematPolicy, ...]":
    """What `fn` needs and multiplies with each policy of `jax.checkpoint`, the lowest peak first, by liveness.

    Args:
        fn: A function that is not jitted: it is traced once for each policy, with `jit_options`.
        args: Arrays or `jax.ShapeDtypeStruct`s.
    """
    from peaksight.jax.policies import remat_policies

    return remat_policies(fn, *args, **jit_options)


def verify(original: Any, changed: Any, *args: Any, steps: int = 2) -> "Certificate":
    """Whether `changed` trains as `original` does: both run on the CPU, on the same numbers.

    Args:
        args: What both are called with. `jax.ShapeDtypeStruct`s get seeded numbers between 0 and 0.1.
        steps: How often, where they return the next value of their first argument, or change it in place.

    Raises:
        UnsupportedError: one of the functions cannot be traced.
    """
    from peaksight.verification.jax_functions import verify_functions

    return verify_functions(original, changed, *args, steps=steps)
