"""Calls of `jax.lax.stop_gradient` behind which others stop the same gradients anyway."""

import os
from collections.abc import Iterator

from jax._src.interpreters import partial_eval
from jax.extend.core import ClosedJaxpr, Jaxpr, JaxprEqn, Var

from peaksight.jax.source_lines import is_library, line_of
from peaksight.records.jax_program import StopFact

# Folders of JAX that are between `stop_gradient` and who calls it; others call it for their own sake, as softmax does.
_ON_THE_WAY = {"_src", "interpreters", "lax"}


def stops_of(closed: ClosedJaxpr) -> tuple[StopFact, ...]:
    """Each line of the user's that stops gradients, with the lines that stop them behind it, if all are stopped."""
    jaxpr, _ = partial_eval.dce_jaxpr(closed.jaxpr, [True] * len(closed.out_avals))
    found: dict[str, list[set[str] | None]] = {}
    for place, eqn in enumerate(jaxpr.eqns):
        if _is_stop(eqn):
            found.setdefault(line_of(eqn), []).append(_stopped_behind(jaxpr, place))
    return tuple(StopFact(at=at, again_at=_merged(behind, at)) for at, behind in found.items())


def _merged(behind: list[set[str] | None], at: str) -> tuple[str, ...]:
    """The lines behind all values that are stopped at one line; empty if one of them goes on."""
    lines: set[str] = set()
    for each in behind:
        if each is None:
            return ()
        lines |= each
    return tuple(sorted(lines - {at}))


def _stopped_behind(jaxpr: Jaxpr, place: int) -> set[str] | None:
    """The lines at which all that is made of what equation `place` gives is stopped; None where some of it is not."""
    made = set(jaxpr.eqns[place].outvars)
    lines: set[str] = set()
    for eqn in jaxpr.eqns[place + 1 :]:
        if made.isdisjoint(each for each in eqn.invars if isinstance(each, Var)):
            continue
        if _is_stop(eqn):
            lines.add(line_of(eqn))
        else:
            made.update(eqn.outvars)
    return None if made & {each for each in jaxpr.outvars if isinstance(each, Var)} else lines


def _is_stop(eqn: JaxprEqn) -> bool:
    return eqn.primitive.name == "stop_gradient" and all(_leads_there(file) for file in _files_inside(eqn))


def _leads_there(file: str) -> bool:
    return os.path.basename(os.path.dirname(file)) in _ON_THE_WAY


def _files_inside(eqn: JaxprEqn) -> Iterator[str]:
    """The files of libraries between the user's innermost line and the equation."""
    traceback = eqn.source_info.traceback
    for frame in [] if traceback is None else traceback.frames:
        if not is_library(frame.file_name):
            return
        yield frame.file_name
