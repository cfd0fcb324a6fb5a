"""What XLA plans for a program with a change that liveness finds worth it, where compiling takes seconds."""

from collections.abc import Callable, Mapping
from dataclasses import replace

from peaksight.errors import UnsupportedError
from peaksight.gpus import Card
from peaksight.jax.compiling import Call, NoCompiler, compile_for
from peaksight.jax.edits import CastBefore, Donate, KeepApart
from peaksight.jax.execution import Planned
from peaksight.jax.inlining import graph_of
from peaksight.records.jax_program import Change, JaxProgram, WhatIf, argument_of

# XLA takes two to five seconds of one processor for a program of so many operations, loops counted once.
MAX_NODES = 1500
# Of the peak: no rule proposes what saves less.
_WORTH = 0.01

_EDITS: Mapping[Change, Callable[[Call, WhatIf], Call]] = {
    Change.DONATE: lambda call, what_if: Donate(call.name, tuple(map(argument_of, what_if.about)))(call),
    Change.CAST_BEFORE: lambda call, _: CastBefore(call.name)(call),
    Change.KEEP_APART: lambda call, _: KeepApart(call.name)(call),
}


def with_compiled(program: JaxProgram, planned: Planned, card: Card, num_devices: int) -> JaxProgram:
    """`program` with XLA's plan of it, and of each change to it that can be made to a traced function."""
    if planned.without_compiler or len(graph_of(planned.call.closed).nodes) > MAX_NODES:
        return program
    what_ifs = tuple(_compiled(each, program, planned.call, card, num_devices) for each in program.what_ifs)
    return replace(program, what_ifs=what_ifs, compiled_bytes=planned.program.total_bytes)


def _compiled(what_if: WhatIf, program: JaxProgram, call: Call, card: Card, num_devices: int) -> WhatIf:
    edit = _EDITS.get(what_if.change)
    if edit is None or program.peak_bytes - what_if.peak_bytes < _WORTH * program.peak_bytes:
        return what_if
    try:
        plan = compile_for(card, edit(call, what_if), num_devices)
    except (NoCompiler, UnsupportedError):
        return what_if
    return replace(what_if, compiled_bytes=plan.total_bytes)
