"""# The backward pass goes through a frozen forward

## What it finds
A forward whose parameters are frozen and through which a gradient still goes back, because something
trainable feeds it: an image encoder before a frozen language model, a prompt, an adapter.

## Why it costs memory
To bring a gradient through the frozen part its activations are kept, or computed again layer by layer
from a carry that is kept. If nothing before it is trained, JAX finds by itself that none of this is
needed, and `jax.lax.stop_gradient` changes nothing.

## Example
```python
tokens = encoder(params["encoder"], images)  # trained
cache = language_model(params["frozen"], tokens)  # its activations are kept for the encoder's sake
```

## Fixes
- `jax.lax.stop_gradient` on what goes in or comes out of the frozen forward. This is another training:
  what is before it gets no gradient along this way. Only where that was meant.
- Otherwise `jax.checkpoint` of its layers, or freeze what is before it.

## Known misses
A forward that is no `jax.lax.scan`: its gradient goes past each layer by the residual connection.
"""

from peaksight.diagnosis.jax_rule import JaxRule, is_notable, listed, saved, share, simulated
from peaksight.diagnosis.rule import Answer, Refuted
from peaksight.records.findings import Basis, Effect, Finding, Fix
from peaksight.records.jax_program import Change, JaxProgram
from peaksight.units import format_bytes


def examine(program: JaxProgram) -> Answer:
    """The program against itself with a `stop_gradient` there."""
    what_if = next(iter(program.with_change(Change.STOP_GRADIENT)), None)
    if what_if is None:
        return Refuted("no gradient of a trained parameter comes through a scan over frozen ones")
    num_bytes = saved(program, what_if)
    if not is_notable(program, num_bytes):
        return Refuted(f"with stop_gradient before the frozen forward the peak is {format_bytes(what_if.peak_bytes)}")
    where = what_if.at.removeprefix("transpose(").rstrip(")").removeprefix("jvp(")
    return [
        Finding(
            rule=RULE.slug,
            title=f"The backward pass goes through a frozen forward{f' ({where})' if where else ''}, "
            f"for {format_bytes(num_bytes)}",
            bytes=num_bytes,
            evidence=(
                f"what this takes is {share(program, num_bytes)}",
                f"it is what trains {listed(what_if.about)}",
            ),
            fixes=(
                Fix(
                    kind="stop-gradient",
                    text="Put jax.lax.stop_gradient before the frozen forward if what is before it need not learn "
                    f"from it: {listed(what_if.about)} would get no gradient; {simulated(program, what_if)}.",
                    effect=Effect.MODEL,
                    saves_bytes=num_bytes,
                ),
            ),
            basis=Basis.COUNTERFACTUAL,
        )
    ]


RULE = JaxRule("jax-backward-through-frozen", examine)
