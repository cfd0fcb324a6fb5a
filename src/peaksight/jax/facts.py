"""A traced function as the record that rules read."""

from collections.abc import Iterator, Sequence

from jax.extend.core import ClosedJaxpr, Jaxpr, jaxprs_in_params

from peaksight.jax.casts import casts_of, dtype_of
from peaksight.jax.donation import place_outputs
from peaksight.jax.freeze_mentions import freeze_mentions
from peaksight.jax.inlining import is_recomputation, prevents_cse
from peaksight.jax.jaxpr_graph import Graph
from peaksight.jax.liveness import argument_paths, liveness
from peaksight.jax.readers import readers_of
from peaksight.jax.scans import scans_of
from peaksight.jax.source_lines import line_of, own_file_of
from peaksight.jax.stops import stops_of
from peaksight.jax.updates import pairs_of
from peaksight.jax.what_if import Program, frozen_of, what_ifs
from peaksight.records.jax_program import ArgumentFact, ConstantFact, JaxProgram, PoolFact, RematFact, RematPolicy


def program_of(
    closed: ClosedJaxpr,
    *,
    donated: Sequence[bool] = (),
    paths: Sequence[str] = (),
    name: str = "",
    pool: PoolFact | None = None,
    policies: Sequence[RematPolicy] = (),
) -> JaxProgram:
    """What rules may know of `closed`; the arguments are as in `liveness`, `policies` as of `remat_policies`."""
    program = Program(
        closed, tuple(donated) or (False,) * len(closed.jaxpr.invars), tuple(paths) or argument_paths(closed)
    )
    seen = liveness(closed, donated=program.donated, paths=program.paths)
    remats = tuple(_remats(closed.jaxpr, in_loop=False))
    return JaxProgram(
        name=name or (closed.jaxpr.debug_info.func_name if closed.jaxpr.debug_info else ""),
        peak_bytes=seen.peak_bytes,
        argument_bytes=seen.argument_bytes,
        constant_bytes=seen.constant_bytes,
        output_bytes=seen.output_bytes,
        aliased_bytes=seen.aliased_bytes,
        temporary_bytes=seen.temporary_bytes,
        live=seen.live,
        arguments=_arguments(program),
        constants=_constants(program.original),
        remats=remats,
        scans=tuple(scan.fact() for scan in scans_of(program.original)),
        what_ifs=tuple(what_ifs(program, remats)),
        stops=stops_of(closed),
        freezes=freeze_mentions(_own_files(closed.jaxpr)),
        pool=pool,
        policies=tuple(policies),
    )


def _arguments(program: Program) -> tuple[ArgumentFact, ...]:
    graph = program.original
    casts, frozen = casts_of(graph), set(frozen_of(graph))
    inputs = set(graph.inputs)
    changed = {value for output, value in pairs_of(graph).items() if output not in inputs}
    written = set(place_outputs(program.graph(), program.donated).values())
    numbers = {value.argument for value in written}
    return tuple(
        ArgumentFact(
            path=program.paths[value.argument],
            tensor=value.tensor,
            bytes=value.bytes,
            is_donated=program.donated[value.argument],
            is_returned=value in frozen,
            is_changed=value in changed,
            is_written=value.argument in numbers,
            cast_to=dtype_of(casts[value].writes[0]) if value in casts else "",
            cast_at=line_of(eqn) if value in casts and (eqn := casts[value].eqn) is not None else "",
        )
        for value in graph.inputs
    )


def _constants(graph: Graph) -> tuple[ConstantFact, ...]:
    readers = readers_of(graph)
    facts = []
    for value in graph.constants:
        eqn = next((node.eqn for node in readers.get(value, ()) if node.eqn is not None), None)
        facts.append(ConstantFact(tensor=value.tensor, bytes=value.bytes, at=line_of(eqn) if eqn is not None else ""))
    return tuple(sorted(facts, key=lambda fact: -fact.bytes))


def _remats(jaxpr: Jaxpr, *, in_loop: bool) -> Iterator[RematFact]:
    for eqn in jaxpr.eqns:
        name, params = eqn.primitive.name, eqn.params
        inner = list(jaxprs_in_params(params))
        if is_recomputation(eqn):
            recomputes = any("rematted_computation" in str(each.source_info.name_stack) for each in inner[0].eqns)
            lines = (line for each in (eqn, *inner[0].eqns) if (line := line_of(each)))
            yield RematFact(at=next(lines, ""), in_loop=in_loop, prevents_cse=prevents_cse(eqn), recomputes=recomputes)
        is_loop = name == "while" or (name == "scan" and params["length"] > params["unroll"])
        for each in inner:
            yield from _remats(each, in_loop=in_loop or is_loop)


def _own_files(jaxpr: Jaxpr) -> set[str]:
    files = {own_file_of(eqn) for eqn in jaxpr.eqns}
    return {file for file in files if file}
