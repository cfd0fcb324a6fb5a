"""What a kind of fix is: one a file in `fixes`."""

from collections.abc import Callable, Iterable
from dataclasses import dataclass

from peaksight.planning.situation import Situation
from peaksight.records.findings import Effect
from peaksight.records.proposals import Candidate, NotApplied

Proposal = Candidate | NotApplied


@dataclass(frozen=True, slots=True, kw_only=True)
class FixKind:
    """A kind of fix: `slug` names it, `text` says what it does, what it costs and when it may not be made.

    `propose` gives what can be tried in a situation, the mildest first, or says why it is not tried; nothing where it
    is out of the question. `effect` is the most that it does to the training.
    """

    slug: str
    title: str
    effect: Effect
    text: str
    propose: Callable[[Situation], Iterable[Proposal]]
