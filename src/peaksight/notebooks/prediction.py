"""What a notebook shows of a simulated run."""

from dataclasses import dataclass
from html import escape

from peaksight.records import Report
from peaksight.reporting.notebook import summary_to_html, summary_to_text

PAGE_HEIGHT = 720


@dataclass(frozen=True, slots=True, kw_only=True, repr=False)
class Prediction:
    """The answer of a simulated run: what the peak is, and what holds it.

    `report` has every number, as `--json` writes it (`prediction.report.peak.allocated_bytes`), `text` is what
    `peaksight run` prints, `page` the page of `--html`. `notes` say what ran before the code. Nothing here was
    measured; what could not be simulated is in `report.not_simulated`, and shown.
    """

    report: Report
    text: str
    page: str
    notes: tuple[str, ...] = ()

    @property
    def fits(self) -> bool | None:
        """Whether it fits the card, None for "likely, but something at the peak is unknown"."""
        return self.report.fits

    @property
    def peak_bytes(self) -> int:
        """What the job needs on the card: the peak of reserved memory."""
        return self.report.peak.reserved_bytes

    def __str__(self) -> str:
        """The verdict, who holds the peak, and what was not simulated."""
        return summary_to_text(self.report, self.notes)

    __repr__ = __str__

    def _repr_html_(self) -> str:
        """The same as a small table."""
        return summary_to_html(self.report, self.notes)

    def show(self) -> "Page":
        """The whole page, in a notebook."""
        return Page(report=self.report, text=self.text, page=self.page, notes=self.notes)


class Page(Prediction):
    """A prediction that a notebook shows by its page, with timeline and live set, and a terminal by its text."""

    __slots__ = ()

    def __str__(self) -> str:
        """What `peaksight run` prints."""
        return "\n".join((*self.notes, self.text)) if self.notes else self.text

    __repr__ = __str__

    def _repr_html_(self) -> str:
        """The page in a frame: it runs its own scripts, saves its JSON, and has no access to the notebook."""
        notes = "".join(f"<p>{escape(note)}</p>" for note in self.notes)
        return (
            f'{notes}<iframe srcdoc="{escape(self.page)}" sandbox="allow-scripts allow-downloads" title="peaksight" '
            f'style="width: 100%; height: {PAGE_HEIGHT}px; border: 0"></iframe>'
        )
