"""Blocks that the script holds by names of a kind, and when they would go if it did not."""

import re
from bisect import bisect_right
from collections.abc import Iterable

from peaksight.diagnosis.evidence import Evidence
from peaksight.records import Allocation, Phase, Role

# What transformers calls the tensors of all layers in its outputs.
OUTPUT_NAMES = r"\b(\w+_)?(hidden_states|attentions)\["
# What transformers calls caches in its outputs and in the objects that hold them, and models written like GPT-2.
CACHE_NAMES = r"\bpast_key_values?\b|\b(key|value|kv)_cache\b|\b_?(layer_)?pasts?\b|\bpresents?\b"


def held_as(evidence: Evidence, pattern: str) -> tuple[Allocation, ...]:
    """The allocations of the run that were reached by a name in which the regular expression `pattern` is found."""
    wanted = re.compile(pattern)
    holds = (hold for hold in evidence.capture.holds if not hold.by_graph and wanted.search(hold.name))
    born = {hold.born for hold in holds}
    return tuple(allocation for allocation in evidence.capture.allocations if allocation.born in born)


def without_names(evidence: Evidence, allocations: Iterable[Allocation]) -> dict[Allocation, int]:
    """The tick at which each of `allocations` would go if no name held it.

    What a backward pass needs goes when the last node that saves it has run. All else is taken to go at once: for how
    long the operators that read it need it is not known.
    """
    passes = _passes(evidence)
    return {a: _needed_until(passes, a) if a.backward else a.born + 1 for a in allocations}


def idle_in_backward(evidence: Evidence) -> dict[Allocation, int]:
    """Results that have a name although no backward pass needs them, with the tick at which the next one begins.

    Those of caches are left out, and what outlives the step after its own: statistics that an optimizer goes on with.
    """
    began = evidence.backward_began
    is_cache = re.compile(CACHE_NAMES).search
    named = {hold.born for hold in evidence.capture.holds if not hold.by_graph and not is_cache(hold.name)}
    results = (a for a in evidence.capture.allocations if a.born in named and _is_idle_result(a))
    outputs = (a for a in results if evidence.step_ends_outlived(a) < 2)
    return {a: began[place] for a in outputs if (place := bisect_right(began, a.born)) < len(began)}


def _is_idle_result(allocation: Allocation) -> bool:
    is_result = allocation.phase is Phase.FORWARD and allocation.role is Role.UNMARKED
    return is_result and allocation.grad_enabled and not allocation.backward


def without_copies(evidence: Evidence, allocations: Iterable[Allocation]) -> dict[Allocation, int]:
    """As `without_names`, for what would not be copied if it were not to be kept.

    A copy whose original is saved for a backward pass as well would not be there at all; where the original is not, it
    would be there in place of the copy.
    """
    ends = without_names(evidence, allocations)
    born = evidence.by_birth
    originals = {copy: born[copy.copy_of] for copy in ends if copy.copy_of in born}
    return ends | {copy: copy.born for copy, original in originals.items() if original.backward}


def _needed_until(passes: list[list[Allocation]], saved: Allocation) -> int:
    """The tick of the first block that a node made after the last that saves `saved`, in the backward pass of these."""
    if saved.backward > len(passes):
        return saved.born + 1
    made = passes[saved.backward - 1]
    return next((a.born for a in made if 0 < a.node < saved.node), made[-1].born + 1 if made else saved.born + 1)


def _passes(evidence: Evidence) -> list[list[Allocation]]:
    """What each backward pass of the run made, in order."""
    began = evidence.backward_began
    made: list[list[Allocation]] = [[] for _ in began]
    for allocation in evidence.capture.allocations:
        if allocation.phase is Phase.BACKWARD and (place := bisect_right(began, allocation.born)):
            made[place - 1].append(allocation)
    return made
