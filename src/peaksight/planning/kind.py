"""What a kind of fix is: one a file in `fixes`."""

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import Any

from peaksight.planning.situation import Situation
from peaksight.records.findings import Effect
from peaksight.records.plan import Change
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

    def candidate(
        self,
        *slots: str,
        title: str = "",
        effect: Effect | None = None,
        cautions: tuple[str, ...] = (),
        **parameters: Any,
    ) -> Candidate:
        """One with the change of this kind's name, which takes `parameters`; `Candidate` says what the rest is."""
        return Candidate(
            kinds=(self.slug,),
            title=title or self.title,
            slots=slots,
            effect=effect or self.effect,
            changes=(Change(kind=self.slug, parameters=parameters),),
            cautions=cautions,
        )

    def not_applied(self, why: str, advice: str = "", *, effect: Effect | None = None) -> NotApplied:
        """That it is not tried, and `why`."""
        return NotApplied(kind=self.slug, title=self.title, effect=effect or self.effect, why=why, advice=advice)
