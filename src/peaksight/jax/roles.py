"""What an argument is for, from its place in the call and from its name."""

import re
from collections.abc import Iterable, Sequence

from peaksight.records import Phase, Role

# The fields of optax's states, and what scripts call the whole.
_OPTIMIZER = re.compile(
    r"(\b|_)(opt|opt_state|optimizer|optim|tx_state|mu|nu|trace|momentum|velocity|sum_of_squares)(\b|_)"
)
_BUFFER = re.compile(r"\b(batch_stats|BatchStat|cache|stats|ema|ema_params)\b")
_GRADIENT = re.compile(r"\b(grads?|gradients?)\b")
_PARAMETER = re.compile(r"\b(params?|model|weights?|variables)\b")
_WRAPPED = re.compile(r"^(?:jit|pjit|transpose|jvp|vmap|remat|checkpoint|shmap_body|shard_map)\((.*)\)$")
# Steps of a path that say how the program is built, and not where in the model it is.
_STRUCTURE = {
    *"while body cond branch closed_call checkpoint rematted_computation remat remat2 custom_jvp_call".split(),
    *"eval_jaxpr custom_vjp_call pjit jit scan core_call shard_map".split(),
}


def roles_of(paths: Sequence[str], is_state: Iterable[bool], floating: Iterable[bool]) -> tuple[Role, ...]:
    """The role of each argument: state comes back from the call in the same type, and all else is input.

    Args:
        paths: `state.params['w']`.
        is_state: whether it is donated, or an output has its shape and type.
        floating: whether it holds floating-point numbers.
    """
    return tuple(_role(path, *flags) for path, *flags in zip(paths, is_state, floating, strict=True))


def _role(path: str, is_state: bool, is_floating: bool) -> Role:
    if _OPTIMIZER.search(path):
        return Role.OPTIMIZER_STATE
    if _GRADIENT.search(path) and is_floating:
        return Role.GRADIENT
    if _BUFFER.search(path):
        return Role.BUFFER
    if _PARAMETER.search(path) and is_floating:
        return Role.PARAMETER
    if is_state:
        return Role.PARAMETER if is_floating else Role.BUFFER
    return Role.INPUT


def place_of(op_name: str) -> tuple[str, str]:
    """The module and the operation in an `op_name` of XLA's metadata.

    `jit(step)/transpose(jvp(GPT))/Block_0/mlp/dot_general` is `dot_general` of `GPT.Block_0.mlp`.
    """
    *scopes, op = op_name.split("/") if op_name else [""]
    names = [name for scope in scopes[1:] if (name := _bare(scope)) and name not in _STRUCTURE]
    # The layers of Equinox name their kind within the path of the module that they are.
    names = [name for name in names if not name.startswith("eqx.nn.")] or names
    # What is computed again begins with the model once more.
    start = len(names) - 1 - names[::-1].index(names[0]) if names else 0
    return ".".join(names[start:]), op


def _bare(scope: str) -> str:
    """The name of a scope without the transformations around it; empty for a function that was jitted."""
    while match := _WRAPPED.match(scope):
        if scope.startswith(("jit(", "pjit(")):
            return ""
        scope = match[1]
    return scope if "->" not in scope and not scope.startswith("branch_") else ""


def phase_of(op_name: str) -> tuple[Phase, bool]:
    """The phase in which a step makes a buffer, and whether it is kept for a backward pass.

    What a program that differentiates does outside of that is the optimizer's step.
    """
    if "rematted_computation" in op_name:
        return Phase.BACKWARD, True
    if "transpose(" in op_name:
        return Phase.BACKWARD, False
    if "jvp(" in op_name:
        return Phase.FORWARD, True
    return Phase.OPTIMIZER, False
