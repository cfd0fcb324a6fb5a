"""`jax.jit(f).lower(...).compile()`: what it gives is called on the virtual card, and knows what XLA plans for that."""

from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import jax
from jax import stages

from peaksight.jax.dump import CompiledProgram
from peaksight.jax.private import call_traced
from peaksight.overlays.patches import Patches

PlanOf = Callable[[Any], CompiledProgram]


@dataclass(frozen=True, slots=True, kw_only=True)
class MemoryStats:
    """What `jax.stages.Compiled.memory_analysis()` says, of the virtual card. The code itself is not generated."""

    argument_size_in_bytes: int
    output_size_in_bytes: int
    alias_size_in_bytes: int
    temp_size_in_bytes: int
    peak_memory_in_bytes: int
    generated_code_size_in_bytes: int = 0
    host_argument_size_in_bytes: int = 0
    host_output_size_in_bytes: int = 0
    host_alias_size_in_bytes: int = 0
    host_temp_size_in_bytes: int = 0
    host_generated_code_size_in_bytes: int = 0


def compile_for_the_card(patches: Patches, plan_of: PlanOf) -> None:
    """Let `Lowered.compile` give programs of the card, whose memory is what `plan_of` says of a `jax.stages.Traced`."""
    lower, compile_lowered = stages.Traced.lower, stages.Lowered.compile

    def lowering(traced: Any, **options: Any) -> Any:
        lowered = lower(traced, **options)
        lowered.peaksight_traced = traced
        return lowered

    def compiling(lowered: Any, *args: Any, **kwargs: Any) -> Any:
        traced = getattr(lowered, "peaksight_traced", None)

        def compiled() -> Any:
            return compile_lowered(lowered, *args, **kwargs)

        return compiled() if traced is None else OnTheCard(lowered, traced, plan_of, compiled)

    patches.set(stages.Traced, "lower", lowering)
    patches.set(stages.Lowered, "compile", compiling)


class OnTheCard(stages.Compiled):  # type: ignore[misc]  # no type where JAX is not installed
    """A compiled function of the virtual card. What else it is asked, as `cost_analysis`, that of the host answers."""

    def __init__(self, lowered: Any, traced: Any, plan_of: PlanOf, compiled: Callable[[], Any]) -> None:
        """Nothing is compiled until it is called or asked."""
        self.args_info = lowered.args_info
        self.out_tree = lowered.out_tree
        self._traced = traced
        self._plan_of = plan_of
        self._compile = compiled

    @cached_property
    def _on_the_host(self) -> Any:
        return self._compile()

    _executable = property(lambda self: self._on_the_host._executable)
    _params = property(lambda self: self._on_the_host._params)
    _no_kwargs = property(lambda self: self._on_the_host._no_kwargs)

    def memory_analysis(self) -> Any:
        """The memory that XLA plans for the card."""
        plan = self._plan_of(self._traced)
        return MemoryStats(
            argument_size_in_bytes=plan.argument_bytes,
            output_size_in_bytes=plan.output_bytes,
            alias_size_in_bytes=plan.aliased_bytes,
            temp_size_in_bytes=plan.temporary_bytes,
            peak_memory_in_bytes=plan.total_bytes,
        )

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        """Run it on the card; TypeError for arguments in another structure, as JAX raises it."""
        leaves, structure = jax.tree.flatten((args, kwargs))
        if structure != self._traced.in_tree:
            raise TypeError(
                "Function compiled with input pytree does not match the input pytree it was called with: "
                f"{self._traced.in_tree} and now {structure}."
            )
        return jax.tree.unflatten(self._traced.out_tree, call_traced(self._traced, leaves))
