"""# Gradients are computed that change nothing

## What it finds
Gradients of which nothing is made but norms: `jax.grad` over all parameters, of which the optimizer
takes only some, while `global_norm(grads)` reads all of them.

## Why it costs memory
What nobody reads XLA leaves out. A norm for the log, or for clipping, reads every gradient: then the
gradients of frozen parameters are made, with the activations that they need.

## Example
```python
loss, grads = jax.value_and_grad(loss_fn)(params)  # of frozen ones too
updates, opt_state = tx.update(grads["head"], opt_state)
metrics = {"grad_norm": optax.global_norm(grads)}  # keeps all of them
```

## Fixes
- Take the gradient of the trainable parameters only (`nnx.DiffState`, `eqx.partition`, a closure over
  the frozen ones): their values stay bitwise the same, the norm becomes that of what is trained.
- Where the norm clips the update, clipping changes with it.

## Known misses
Gradients that are multiplied by a mask of zeros, or that a state of the optimizer takes in.
"""

from peaksight.diagnosis.jax_rule import JaxRule, is_notable, listed, saved, share, simulated
from peaksight.diagnosis.rule import Answer, Refuted
from peaksight.records.findings import Basis, Effect, Finding, Fix
from peaksight.records.jax_program import Change, JaxProgram
from peaksight.units import format_bytes


def examine(program: JaxProgram) -> Answer:
    """The program against itself without these gradients."""
    what_if = next(iter(program.with_change(Change.NO_VAIN_GRADIENTS)), None)
    if what_if is None:
        return Refuted("every gradient that is computed goes into an update")
    num_bytes = saved(program, what_if)
    if not is_notable(program, num_bytes):
        return Refuted(f"without gradients that change nothing the peak is {format_bytes(what_if.peak_bytes)}")
    of = f" of {listed(what_if.about)}" if what_if.about else ""
    return [
        Finding(
            rule=RULE.slug,
            title=f"{format_bytes(what_if.bytes)} of gradients{of} change no parameter",
            bytes=num_bytes,
            evidence=(
                f"with the activations that they need they are {share(program, num_bytes)}",
                "only norms are made of them: no parameter and no state of the optimizer takes them in",
            ),
            fixes=(
                Fix(
                    kind="gradient-of-trainable",
                    text="Take the gradient of the trainable parameters only, and the norm of that; "
                    f"{simulated(program, what_if)}.",
                    effect=Effect.MODEL,
                    saves_bytes=num_bytes,
                ),
            ),
            basis=Basis.COUNTERFACTUAL,
            at=what_if.at,
        )
    ]


RULE = JaxRule("jax-frozen-gradients", examine)
