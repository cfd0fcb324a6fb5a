"""`python -m benchmarks.jax.rules` compares what rules on programs of JAX say of their fix with the fix itself.

Each rule has a program that it is about, and the same as a person mends it. Liveness simulates the fix on the first
one; XLA compiles both, for an L4 without one. Writes docs/jax-rules.md.
"""

from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import optax

import jax
import jax.numpy as jnp
import peaksight.jax
from peaksight.diagnosis.catalog import jax_rules
from peaksight.jax.facts import program_of
from peaksight.units import format_bytes

PAGE = Path(__file__).parents[2] / "docs" / "jax-rules.md"
GPU = "l4"
N = 1024
TX = optax.adam(1e-3)
_HEAD = """# JAX: rules and their fixes

Of each rule on a program of JAX that simulates its fix: the peak of an example as liveness and as XLA have it, what
liveness on its jaxpr says that the fix saves, and what it saves where a person has made it, which XLA compiled
(jaxlib {version}, for an L4). The last column is what `peaksight fix` simulates of it by XLA on a whole script. This
page is the output of `python -m benchmarks.jax.rules`; the examples are there.

| rule | as it is: liveness | as it is: XLA | saves: liveness | saves: XLA | `peaksight fix` |
|---|---|---|---|---|---|"""
_FOOT = """
What is *told* is an edit of the function: `peaksight fix` lists it with what liveness says. A policy is not to be seen
on a traced function: `peaksight.jax.remat_policies` and `peaksight fix` trace it again.

Not in the table: `jax-freeze-filter`, for which `peaksight run` simulates the whole script again, by XLA, with the
mask that was meant; `jax-baked-constants`, as constants of a program are outside of JAX's pool; `jax-preallocation`,
which is about the size of that pool (`jax-mem-fraction` makes it larger); and `jax-stop-without-effect`, about what
saves nothing."""
# The kind of fix that makes the change in a whole script; edits of a function are told, not made.
FIXES = {
    "jax-backward-through-frozen": "told",
    "jax-cast-inside-jit": "`jax-cast-before`",
    "jax-checkpoint-merged": "`jax-prevent-cse`",
    "jax-frozen-gradients": "told",
    "jax-frozen-state": "told",
    "jax-pass-through-copies": "told; `jax-donate` saves as much",
    "jax-remat-policy": "`jax-remat-policy`",
    "jax-remat-without-effect": "`jax-remat-policy`",
    "jax-scan-residuals": "`jax-remat-policy`",
    "jax-state-not-donated": "`jax-donate`",
}


@dataclass(frozen=True)
class Program:
    """A function, its arguments, and the options of `jax.jit`."""

    fn: Callable[..., Any]
    args: tuple[Any, ...]
    options: dict[str, Any] = field(default_factory=dict)


def matrix(*shape: int, dtype: Any = jnp.float32) -> jax.ShapeDtypeStruct:
    """An argument."""
    return jax.ShapeDtypeStruct(shape or (N, N), dtype)


def step_of(loss: Callable[..., Any]) -> Callable[..., Any]:
    """Gradient descent."""

    def step(params: Any, *batch: Any) -> Any:
        return jax.tree.map(lambda w, grad: w - 0.1 * grad, params, jax.grad(loss)(params, *batch))

    return step


DONATED = {"donate_argnums": 0}
X = matrix(8 * N, N)


def _block(x: Any, w: Any) -> Any:
    return jnp.sin(jnp.tanh(jnp.tanh(x @ w) @ w) @ w)


def _not_donated() -> tuple[Program, Program]:
    def loss(ws: Any, x: Any) -> Any:
        return jnp.tanh(x @ ws[0] @ ws[1]).sum()

    def step(state: Any, x: Any) -> Any:
        updates, opt = TX.update(jax.grad(loss)(state["ws"], x), state["opt"])
        return {"ws": optax.apply_updates(state["ws"], updates), "opt": opt}

    ws = [matrix(4 * N, 4 * N)] * 2
    args = {"ws": ws, "opt": jax.eval_shape(TX.init, ws)}, matrix(64, 4 * N)
    return Program(step, args), Program(step, args, DONATED)


def _cast_inside() -> tuple[Program, Program]:
    def step(head: Any, frozen: Any, x: Any) -> Any:
        def loss(head: Any) -> Any:
            hidden = sum(x @ w.astype(jnp.bfloat16) for w in frozen)
            return (jnp.tanh(hidden).astype(jnp.float32) @ head).sum()

        return head - jax.grad(loss)(head)

    given = [[matrix(8 * N, N, dtype=dtype)] * 4 for dtype in (jnp.float32, jnp.bfloat16)]
    before, after = (
        Program(step, (matrix(), frozen, matrix(64, 8 * N, dtype=jnp.bfloat16)), DONATED) for frozen in given
    )
    return before, after


def _frozen(stop: bool, over_all: bool) -> Callable[..., Any]:
    """A trained head behind a frozen body, behind a trained encoder; the norm is that of all gradients."""

    def step(params: Any, x: Any) -> Any:
        def loss(trained: Any, body: Any) -> Any:
            hidden = jnp.tanh(x @ trained["encoder"])
            hidden = jax.lax.stop_gradient(hidden) if stop else hidden
            hidden, _ = jax.lax.scan(lambda hidden, w: (jnp.tanh(hidden @ w), None), hidden, body)
            return (hidden @ trained["head"]).sum()

        trained = {name: params[name] for name in ("encoder", "head")}
        grads = jax.grad(loss, argnums=(0, 1) if over_all else 0)(trained, params["body"])
        norm, grads = optax.global_norm(grads), grads[0] if over_all else grads
        return {**jax.tree.map(lambda w, grad: w - grad, trained, grads), "body": params["body"]}, norm

    return step


_FROZEN = {"encoder": matrix(), "head": matrix(), "body": matrix(12, N, N)}, matrix(N, N)


def _frozen_gradients() -> tuple[Program, Program]:
    before, after = (Program(_frozen(False, over_all), _FROZEN, DONATED) for over_all in (True, False))
    return before, after


def _through_frozen() -> tuple[Program, Program]:
    args = _FROZEN[0], matrix(16 * N, N)
    before, after = (Program(_frozen(stop, False), args, DONATED) for stop in (False, True))
    return before, after


def _frozen_state() -> tuple[Program, Program]:
    def step(state: Any, x: Any) -> Any:
        grads = jax.grad(lambda head: (x @ state["body"][0] @ head).sum())(state["head"])
        is_whole = len(jax.tree.leaves(state["opt"])) > 3
        nothing = jax.tree.map(jnp.zeros_like, state["body"])
        updates, opt = TX.update({"head": grads, "body": nothing} if is_whole else {"head": grads}, state["opt"])
        return {"head": state["head"] + updates["head"], "body": state["body"], "opt": opt}

    params = {"head": matrix(), "body": [matrix()] * 4}
    states = [params | {"opt": jax.eval_shape(TX.init, of)} for of in (params, {"head": matrix()})]
    before, after = (Program(step, (state, matrix()), DONATED) for state in states)
    return before, after


def _pass_through() -> tuple[Program, Program]:
    def step(params: Any, x: Any) -> Any:
        head = params["head"] - jax.grad(lambda head: (x @ params["body"] @ head).sum())(params["head"])
        return {"head": head, "body": params["body"]}

    args = ({"head": matrix(16 * N, 8), "body": matrix(N, 16 * N)}, matrix(64, N))
    return Program(step, args), Program(lambda *given: {"head": step(*given)["head"]}, args)


def _merged() -> tuple[Program, Program]:
    def loss_with(prevent_cse: bool) -> Callable[..., Any]:
        def loss(ws: Any, x: Any) -> Any:
            for w in ws:
                x = jax.checkpoint(_block, prevent_cse=prevent_cse)(x, w)
            return x.sum()

        return loss

    before, after = (Program(step_of(loss_with(flag)), ([matrix()] * 6, X), DONATED) for flag in (False, True))
    return before, after


def _scanned(wrap: Callable[..., Any]) -> Program:
    body = wrap(lambda x, w: (_block(x, w), None))
    step = step_of(lambda ws, x: jax.lax.scan(body, x, ws)[0].sum())
    return Program(step, (matrix(6, N, N), X), DONATED)


def _without_effect() -> tuple[Program, Program]:
    policy = jax.checkpoint_policies.everything_saveable
    return _scanned(lambda body: jax.checkpoint(body, policy=policy)), _scanned(jax.checkpoint)


EXAMPLES: dict[str, Callable[[], tuple[Program, Program]]] = {
    "jax-backward-through-frozen": _through_frozen,
    "jax-cast-inside-jit": _cast_inside,
    "jax-checkpoint-merged": _merged,
    "jax-frozen-gradients": _frozen_gradients,
    "jax-frozen-state": _frozen_state,
    "jax-pass-through-copies": _pass_through,
    "jax-remat-policy": _without_effect,
    "jax-remat-without-effect": _without_effect,
    "jax-scan-residuals": lambda: (_scanned(lambda body: body), _scanned(jax.checkpoint)),
    "jax-state-not-donated": _not_donated,
}


def by_liveness(rule: str) -> tuple[int, int | None]:
    """The peak of the example of `rule`, and what its fix saves; None where liveness does not say."""
    before, _ = EXAMPLES[rule]()
    traced = jax.jit(before.fn, **before.options).trace(*before.args)
    donated = [info.donated for info in jax.tree.leaves(traced.args_info)]
    policies = ()
    if rule == "jax-remat-policy":
        policies = peaksight.jax.remat_policies(before.fn, *before.args, **before.options)
    program = program_of(traced.jaxpr, donated=donated, policies=policies)
    answer = jax_rules()[rule].look(program)
    assert isinstance(answer, tuple), f"{rule} does not find its example: {answer}"
    saved = [fix.saves_bytes for finding in answer for fix in finding.fixes if fix.saves_bytes is not None]
    return program.peak_bytes, max(saved, default=None)


def by_xla(rule: str) -> tuple[int, int]:
    """The peak of the example, and what the fix saves that a person has made."""
    before, after = (
        peaksight.jax.predict(each.fn, *each.args, gpu=GPU, **each.options).peak.allocated_bytes
        for each in EXAMPLES[rule]()
    )
    return before, before - after


def rows() -> Iterator[str]:
    """The table."""
    for rule in EXAMPLES:
        (peak, saved), (compiled, saved_by_xla) = by_liveness(rule), by_xla(rule)
        sizes = ("-" if each is None else format_bytes(each) for each in (peak, compiled, saved, saved_by_xla))
        yield " | ".join((f"| `{rule}`", *sizes, f"{FIXES[rule]} |"))


def main() -> None:
    """Write the page."""
    jax.config.update("jax_platforms", "cpu")
    PAGE.write_text("\n".join([_HEAD.format(version=jax.lib.__version__), *rows(), _FOOT]) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
