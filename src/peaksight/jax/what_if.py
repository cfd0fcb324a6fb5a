"""The peak of a program with one change, simulated on its graph."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from functools import cached_property

from jax.extend.core import ClosedJaxpr

from peaksight.jax.casts import casts_of, without_casts
from peaksight.jax.gradients import drop, gradients_of, stop_before_frozen, updated_by, vain_gradients
from peaksight.jax.inlining import Apart, graph_of
from peaksight.jax.jaxpr_graph import Graph, Value, total_bytes
from peaksight.jax.liveness import liveness_of
from peaksight.jax.pruning import prune
from peaksight.jax.scans import scans_of
from peaksight.jax.source_lines import line_of
from peaksight.jax.state_paths import belongs_to
from peaksight.jax.updates import pairs_of
from peaksight.records.jax_program import Change, RematFact, WhatIf


@dataclass(frozen=True)
class Program:
    """A traced function with the memory that it is given, and the paths of its arguments."""

    closed: ClosedJaxpr
    donated: tuple[bool, ...]
    paths: tuple[str, ...]

    @cached_property
    def original(self) -> Graph:
        """Its graph as it is, not to be changed."""
        return graph_of(self.closed)

    def graph(self, apart: Apart = Apart.AS_WRITTEN) -> Graph:
        """Its graph, to be changed."""
        return graph_of(self.closed, apart=apart)

    def peak_bytes(self, graph: Graph) -> int:
        """The peak of its graph with a change."""
        prune(graph)
        return liveness_of(graph, donated=self.donated).peak_bytes

    def names(self, values: Sequence[Value]) -> tuple[str, ...]:
        """The paths of arguments, the largest first."""
        ordered = sorted(values, key=lambda value: (-value.bytes, value.argument))
        return tuple(self.paths[value.argument] for value in ordered)


def what_ifs(program: Program, remats: Sequence[RematFact]) -> Iterator[WhatIf]:
    """Every change that makes sense of `program`."""
    yield from _donated(program)
    yield from _not_returned(program)
    yield from _cast_before(program)
    yield from _without_vain_gradients(program)
    yield from _with_stop_gradient(program)
    yield from _without_frozen_state(program)
    yield from _remats(program, remats)
    yield from _checkpointed_scans(program)


def frozen_of(graph: Graph) -> list[Value]:
    """The floating-point arguments that come out as they went in."""
    outputs = set(graph.outputs)
    return [value for value in graph.inputs if value in outputs and "float" in value.tensor and value.bytes]


def _donated(program: Program) -> Iterator[WhatIf]:
    given = pairs_of(program.original).values()
    added = [value for value in given if not program.donated[value.argument]]
    if added:
        numbers = {value.argument for value in added}
        donated = tuple(was or number in numbers for number, was in enumerate(program.donated))
        changed = replace(program, donated=donated)
        peak_bytes = changed.peak_bytes(program.graph())
        yield WhatIf(change=Change.DONATE, peak_bytes=peak_bytes, about=program.names(added), bytes=total_bytes(added))


def _not_returned(program: Program) -> Iterator[WhatIf]:
    copied = [value for value in frozen_of(program.original) if not program.donated[value.argument]]
    if copied:
        graph = program.graph()
        numbers = {value.argument for value in copied}
        frozen = {value for value in graph.inputs if value.argument in numbers}
        graph.outputs = [value for value in graph.outputs if value not in frozen]
        about, num_bytes = program.names(copied), total_bytes(copied)
        yield WhatIf(change=Change.NOT_RETURNED, peak_bytes=program.peak_bytes(graph), about=about, bytes=num_bytes)


def _cast_before(program: Program) -> Iterator[WhatIf]:
    if not casts_of(program.original):
        return
    graph = program.graph()
    if casts := casts_of(graph):
        largest = max(casts, key=lambda value: value.bytes)
        eqn = casts[largest].eqn
        about, was_bytes = program.names(list(casts)), total_bytes(casts)
        without_casts(graph, list(casts))
        spared = was_bytes - total_bytes(casts)
        peak_bytes = program.peak_bytes(graph)
        at = line_of(eqn) if eqn is not None else ""
        yield WhatIf(change=Change.CAST_BEFORE, peak_bytes=peak_bytes, about=about, at=at, bytes=spared)


def _without_vain_gradients(program: Program) -> Iterator[WhatIf]:
    if not vain_gradients(program.original):
        return
    graph = program.graph()
    if vain := vain_gradients(graph):
        tensors = {value.tensor for value in vain}
        frozen = [value for value in frozen_of(graph) if value.tensor in tensors]
        drop(graph, vain)
        largest = max(vain, key=lambda value: value.bytes)
        yield WhatIf(
            change=Change.NO_VAIN_GRADIENTS,
            peak_bytes=program.peak_bytes(graph),
            about=program.names(frozen),
            at=line_of(largest.eqn) if largest.eqn is not None else "",
            bytes=total_bytes(vain),
        )


def _with_stop_gradient(program: Program) -> Iterator[WhatIf]:
    if not frozen_of(program.original):
        return
    graph = program.graph()
    drop(graph, vain_gradients(graph))
    prune(graph)
    stop = stop_before_frozen(graph, set(frozen_of(graph)))
    # Where nothing would be trained any more, as of adapters in a frozen model, it is no proposal.
    if stop.lost and len(stop.lost) < len(gradients_of(graph)):
        names = _updated(program, graph, stop.lost)
        stop.apply(graph)
        yield WhatIf(change=Change.STOP_GRADIENT, peak_bytes=program.peak_bytes(graph), about=names, at=stop.scope)


def _updated(program: Program, graph: Graph, gradients: Sequence[Value]) -> tuple[str, ...]:
    """The arguments that `gradients` would have changed."""
    pairs = pairs_of(graph)
    arguments = {pairs[value] for gradient in gradients for value in updated_by(gradient, graph) if value in pairs}
    return program.names(list(arguments))


def _without_frozen_state(program: Program) -> Iterator[WhatIf]:
    if not frozen_of(program.original):
        return
    graph = program.graph()
    frozen = {program.paths[value.argument] for value in frozen_of(graph)}
    shapes = {program.paths[value.argument]: value.tensor.partition("[")[2] for value in graph.inputs}
    owners = belongs_to(frozen, shapes)
    held = [value for value in graph.inputs if program.paths[value.argument] in owners]
    if held:
        homes = set(held)
        num_bytes, names = total_bytes(held), program.names(held)
        for value in {*held, *(output for output, home in pairs_of(graph).items() if home in homes)}:
            value.bytes = 0
        yield WhatIf(change=Change.NO_FROZEN_STATE, peak_bytes=program.peak_bytes(graph), about=names, bytes=num_bytes)


def _remats(program: Program, remats: Sequence[RematFact]) -> Iterator[WhatIf]:
    if any(not each.prevents_cse and not each.in_loop for each in remats):
        peak_bytes = program.peak_bytes(program.graph(Apart.ALWAYS))
        yield WhatIf(change=Change.KEEP_APART, peak_bytes=peak_bytes)
    if any(each.prevents_cse and not each.in_loop for each in remats):
        peak_bytes = program.peak_bytes(program.graph(Apart.NEVER))
        yield WhatIf(change=Change.WITHOUT_REMAT, peak_bytes=peak_bytes)


def _checkpointed_scans(program: Program) -> Iterator[WhatIf]:
    """Each scan whose body is not computed again, as if one step of what it saves were there at a time."""
    for number, scan in enumerate(scans_of(program.original)):
        if not scan.residuals or scan.is_checkpointed:
            continue
        graph = program.graph()
        again = scans_of(graph)[number]
        for value in again.beside_carry():
            value.bytes //= again.length
        fact = scan.fact()
        yield WhatIf(
            change=Change.CHECKPOINT_SCAN,
            peak_bytes=program.peak_bytes(graph),
            about=(fact.scope,),
            at=fact.at,
            bytes=fact.residual_bytes,
        )
