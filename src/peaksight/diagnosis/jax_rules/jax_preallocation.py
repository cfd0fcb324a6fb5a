"""# Another process holds what JAX wants to preallocate

## What it finds
JAX takes a fraction of the card, 75 % unless XLA_PYTHON_CLIENT_MEM_FRACTION says otherwise, when it
first touches it, and other processes hold so much that this is not there.

## Why it costs memory
The fraction is of the whole card, not of what is free. A second JAX process, a display, a notebook that
still runs or PyTorch in the same process: then the very first operation fails, however small.

## Example
```
failed to allocate 17.78GiB (19088605184 bytes) from device: RESOURCE_EXHAUSTED: CUDA_ERROR_OUT_OF_MEMORY
```

## Fixes
- End the other process (`nvidia-smi` names it).
- `XLA_PYTHON_CLIENT_MEM_FRACTION=.45` for each of two, or `XLA_PYTHON_CLIENT_PREALLOCATE=false`: memory
  is then taken as it is needed, more in pieces.

## Known misses
What the other processes will take later.
"""

from peaksight.diagnosis.jax_rule import JaxRule
from peaksight.diagnosis.rule import Answer, NotDecidable, Refuted
from peaksight.records.findings import Basis, Effect, Finding, Fix
from peaksight.records.jax_program import JaxProgram
from peaksight.units import format_bytes


def examine(program: JaxProgram) -> Answer:
    """What JAX asks for, against what is free."""
    pool = program.pool
    if pool is None:
        return NotDecidable("no card was named")
    wanted, free = int(pool.fraction * pool.total_bytes), pool.total_bytes - pool.others_bytes
    if not pool.preallocates:
        return Refuted("XLA_PYTHON_CLIENT_PREALLOCATE=false: memory is taken as it is needed")
    if wanted <= free:
        return Refuted(f"{format_bytes(wanted)} are preallocated of {format_bytes(free)} that are free")
    others = format_bytes(pool.others_bytes)
    fitting = max(0.0, free / pool.total_bytes - 0.02)
    return [
        Finding(
            rule=RULE.slug,
            title=f"JAX asks for {format_bytes(wanted)} at its start, and others hold {others}",
            bytes=wanted - free,
            evidence=(f"{format_bytes(free)} of {format_bytes(pool.total_bytes)} are free",),
            fixes=(
                Fix(
                    kind="mem-fraction",
                    text=f"End the other process, or set XLA_PYTHON_CLIENT_MEM_FRACTION={fitting:.2f}.",
                    effect=Effect.BITWISE,
                    saves_bytes=wanted - free,
                ),
            ),
            basis=Basis.PATTERN,
        )
    ]


RULE = JaxRule("jax-preallocation", examine)
