"""How a person makes the changes of a plan for a script under JAX."""

from collections.abc import Callable, Iterator, Mapping
from typing import Any

from peaksight.planning.situation import Situation
from peaksight.records.jax_program import JaxProgram
from peaksight.records.plan import Change

Parameters = Mapping[str, Any]


def _sharding(parameters: Parameters) -> str:
    state = (
        "an Nth of each array of the state by its longest axis that N divides, in `out_shardings` of what makes it too"
        if parameters["state"]
        else "`P()` for the state"
    )
    return (
        f'a mesh, `jax.make_mesh(({parameters["num_devices"]},), ("cards",))`, and `in_shardings` of the jitted '
        f'functions by `NamedSharding(mesh, P("cards"))` for the batch and {state}'
    )


# By the kind of the change, as in `jax.changes`.
JAX_WORDS: dict[str, Callable[[Parameters], str]] = {
    "jax-cast-before": lambda parameters: (
        f"the arguments that `{parameters['program']}` casts, cast where they are made or loaded, on the host"
    ),
    "jax-checkpoint-loss": lambda parameters: (
        f"`jax.checkpoint(loss, policy=jax.checkpoint_policies.{parameters['policy']})` where `jax.grad` or "
        "`jax.value_and_grad` takes the loss"
    ),
    "jax-donate": lambda parameters: (
        f"`donate_argnames=({', '.join(map(repr, parameters['arguments']))},)` for `jax.jit` of "
        f"`{parameters['program']}`"
    ),
    "jax-mem-fraction": lambda parameters: (
        f"`XLA_PYTHON_CLIENT_MEM_FRACTION={parameters['fraction']:g}` in the environment"
    ),
    "jax-prevent-cse": lambda parameters: (
        f"`prevent_cse=True` for each `jax.checkpoint` of `{parameters['program']}` outside of a loop"
    ),
    "jax-remat-policy": lambda parameters: (
        f"`policy=jax.checkpoint_policies.{parameters['policy']}` for each `jax.checkpoint`, and "
        "`jax.checkpoint(body, policy=..., prevent_cse=False)` for the body of each `jax.lax.scan` that has none"
    ),
    "jax-sharding": _sharding,
}


def line_of(change: Change, situation: Situation) -> str:
    """The first line that `change` is about, empty where none is known."""
    programs = situation.capture.programs
    named = [each for each in programs if each.name == change.parameters.get("program")]
    return next((at for each in named or programs for at in _lines(change.kind, each) if at), "")


def _lines(kind: str, program: JaxProgram) -> Iterator[str]:
    if kind in ("jax-donate", "jax-cast-before"):
        yield program.at
    if kind in ("jax-prevent-cse", "jax-remat-policy"):
        yield from (each.at for each in program.remats)
        yield from (each.at for each in program.scans)
