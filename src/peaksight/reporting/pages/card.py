"""The card as a bar: what each part of it is taken by at the peak."""

from dataclasses import dataclass

from peaksight.records import Report
from peaksight.reporting.pages.palette import COLORS


@dataclass(frozen=True, slots=True, kw_only=True)
class CardPart:
    """A part of the bar, named by its category or by what else takes it; `share` is that of the whole bar."""

    part: str
    bytes: int
    share: float


@dataclass(frozen=True, slots=True, kw_only=True)
class CardBar:
    """The parts in their order; `over_bytes` of them are beyond the `total_bytes` of the card."""

    parts: tuple[CardPart, ...]
    total_bytes: int
    over_bytes: int

    @property
    def shown_bytes(self) -> int:
        """All parts together."""
        return sum(part.bytes for part in self.parts)


def card_bar(report: Report) -> CardBar | None:
    """The bar of `report`, None where its record does not tell the parts."""
    budget = report.budget
    if budget is None:
        return None
    shown = max(sum(part.bytes for part in budget.parts), 1)
    order = list(COLORS)
    parts = [CardPart(part=p.part, bytes=p.bytes, share=round(p.bytes / shown, 5)) for p in budget.parts if p.bytes]
    parts.sort(key=lambda part: order.index(part.part))
    return CardBar(parts=tuple(parts), total_bytes=budget.total_bytes, over_bytes=budget.over_bytes)
